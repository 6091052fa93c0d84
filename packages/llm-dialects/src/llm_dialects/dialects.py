"""The table of dialects: adding one is one module and one row."""

from llm_dialects.anthropic_messages import ANTHROPIC_MESSAGES
from llm_dialects.dialect import Dialect
from llm_dialects.gemini import GEMINI
from llm_dialects.openai_chat import OPENAI_CHAT
from llm_dialects.openai_responses import OPENAI_RESPONSES

DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect for dialect in (OPENAI_CHAT, OPENAI_RESPONSES, ANTHROPIC_MESSAGES, GEMINI)
}
