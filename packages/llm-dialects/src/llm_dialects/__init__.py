"""Model providers' wire formats and the neutral vocabulary between them; pure values and functions."""

# isort: skip_file
# fmt: off
from llm_dialects.actions import Action, Body, Head, Pause, Reply, Reset, Stall
from llm_dialects.chunks import (
    Block, BlockEnd, BlockStart, Failure, Finish, FinishReason, Json, ReasoningBlock, ReasoningDelta, Record,
    StreamChunk, TextBlock, TextDelta, ToolCallBlock, ToolCallDelta, Usage, UsageChunk, block_from_json,
    chunk_from_json, chunks_from_json, plain, to_json,
)
from llm_dialects.dialect import Answer, Dialect, DialectError, StreamDecoder, answer_to, call_of, is_streamed
from llm_dialects.dialects import DIALECTS
from llm_dialects.entries import (
    Chunks, Entry, Hang, Say, Throw, entry_from_json, entry_to_json, say_to_chunks, upstream_from_json,
)
from llm_dialects.errors import ProviderError, classify, failure_in, status_of
from llm_dialects.fold import Folded, fold, unfold
from llm_dialects.limits import CANNOT_SAY, Limit, Loss, limits
from llm_dialects.lineage import appended, common_prefix, extends, same_header, same_messages, strip_volatile
from llm_dialects.render import RenderError, escape, expand, fill_from_request, map_strings, substitute, unescape
from llm_dialects.requests import ImagePart, Message, OpaquePart, Part, Request, Tool, ToolResultPart
from llm_dialects.sse import SseDecoder, SseEvent, encode_event
from llm_dialects.telling import EntryError, Wire
from llm_dialects.usage import honest_usage

__all__ = [
    "CANNOT_SAY", "DIALECTS", "Action", "Answer", "Block", "BlockEnd", "BlockStart", "Body", "Chunks", "Dialect",
    "DialectError", "Entry", "EntryError", "Failure", "Finish", "FinishReason", "Folded", "Hang", "Head", "ImagePart",
    "Json", "Limit", "Loss", "Message", "OpaquePart", "Part", "Pause", "ProviderError", "ReasoningBlock",
    "ReasoningDelta", "Record", "RenderError", "Reply", "Request", "Reset", "Say", "SseDecoder", "SseEvent", "Stall",
    "StreamChunk", "StreamDecoder", "TextBlock", "TextDelta", "Throw", "Tool", "ToolCallBlock", "ToolCallDelta",
    "ToolResultPart", "Usage", "UsageChunk", "Wire", "answer_to", "appended", "block_from_json", "call_of",
    "chunk_from_json", "chunks_from_json", "classify", "common_prefix", "encode_event", "entry_from_json",
    "entry_to_json", "escape", "expand", "extends", "failure_in", "fill_from_request", "fold", "honest_usage",
    "is_streamed", "limits", "map_strings", "plain", "same_header", "same_messages", "say_to_chunks", "status_of",
    "strip_volatile", "substitute", "to_json", "unescape", "unfold", "upstream_from_json",
]
