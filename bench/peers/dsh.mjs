// A launcher: the DeepSeek server is a library without a command. node dsh.mjs PORT OPTIONS_JSON
import { startMockLlmServer } from "@deepseek-ai/dsh-llm-mock-server";

const [port, options] = process.argv.slice(2);
await startMockLlmServer({ port: Number(port), ...JSON.parse(options) });
