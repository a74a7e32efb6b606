import { ContentError } from '../content-error.js';
import { member, postJson } from '../http.js';
import { type ChatModel, DecoderFailure } from './chat-model.js';
import { compiledSchema, type JsonSchema } from './schema.js';

const FENCE = '```';
const THOUGHT = ['<think>', '</think>'] as const;

/**
 * The JSON of an answer. Models may think aloud before it or put it between fences if the server does not enforce a
 * schema.
 *
 * @throws DecoderFailure `malformedAnswer`
 */
function jsonOf(content: string): unknown {
  const text = withoutThought(content).trim();
  const parsed = parse(text);
  if (parsed !== NONE) return parsed;
  const fenced = betweenFences(text);
  const inner = fenced === null ? NONE : parse(fenced);
  if (inner !== NONE) return inner;
  throw new DecoderFailure('malformedAnswer', 'the model answered something that is not JSON');
}

const NONE = Symbol('no JSON');

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return NONE;
  }
}

function withoutThought(content: string): string {
  const [begin, end] = THOUGHT;
  if (!content.trimStart().startsWith(begin)) return content;
  const at = content.indexOf(end);
  return at < 0 ? content : content.slice(at + end.length);
}

/** Text between the first fence, without its language tag, and the last one. */
function betweenFences(text: string): string | null {
  const begin = text.indexOf(FENCE);
  const end = text.lastIndexOf(FENCE);
  if (begin < 0 || end <= begin) return null;
  return text.slice(begin + FENCE.length, end).replace(/^[a-z]{0,16}\s/i, '');
}

/** A question about one passage. */
export interface ChatQuestion {
  readonly system: string;
  readonly user: string;
  /** Schema of the answer; always checked here, whatever the server claims. */
  readonly schema: JsonSchema;
  /** True if the schema uses only features that servers can enforce. */
  readonly strict: boolean;
}

/** Usage as reported by the server. */
export interface ChatUsage {
  requests: number;
  promptTokens: number;
  answerTokens: number;
}

const DEFAULT_MAX_TOKENS = 1_024;
/** Status codes with which servers refuse an unknown member. */
const NOT_UNDERSTOOD: ReadonlySet<number | null> = new Set([400, 422, 501]);

/** Request body, which also determines the cache key. */
export function chatBody({ endpoint }: ChatModel, question: ChatQuestion) {
  return {
    model: endpoint.model,
    temperature: 0,
    max_tokens: endpoint.maxTokens ?? DEFAULT_MAX_TOKENS,
    messages: [
      { role: 'system', content: question.system },
      { role: 'user', content: question.user },
    ],
    response_format: {
      type: 'json_schema',
      json_schema: { name: 'answer', strict: question.strict, schema: question.schema },
    },
  };
}

type ChatBody = ReturnType<typeof chatBody>;

/**
 * Sends one request, with temperature 0 and no tools. If the server refuses `response_format`, it is asked without
 * it, now and in later requests.
 *
 * @returns the text of the answer
 * @throws DecoderFailure; the reason of `signal`
 */
export async function askChat(
  model: ChatModel,
  body: ChatBody,
  question: ChatQuestion,
  spent: ChatUsage,
  signal: AbortSignal,
): Promise<string> {
  try {
    if (!model.takesFormat) return contentOf(await post(model, withoutFormat(body, question), spent, signal));
    try {
      return contentOf(await post(model, body, spent, signal));
    } catch (error) {
      if (!(error instanceof ContentError) || !NOT_UNDERSTOOD.has(error.status)) throw error;
      const content = contentOf(await post(model, withoutFormat(body, question), spent, signal));
      model.takesFormat = false;
      return content;
    }
  } catch (error) {
    if (!(error instanceof ContentError)) throw error;
    throw new DecoderFailure(
      error.code === 'malformedAnswer' ? 'malformedAnswer' : 'endpoint',
      error.message,
    );
  }
}

/** Value of an answer. @throws DecoderFailure */
export function answerOf(content: string, { schema }: ChatQuestion): unknown {
  const value = jsonOf(content);
  if (compiledSchema(schema)(value)) return value;
  throw new DecoderFailure('schema', 'the model answered something that the schema does not allow');
}

/** The schema is then only stated in the prompt. */
function withoutFormat({ response_format: _, ...body }: ChatBody, { system, user, schema }: ChatQuestion) {
  const told = `${system}\nThe schema of your answer is ${JSON.stringify(schema)}`;
  return {
    ...body,
    messages: [
      { role: 'system', content: told },
      { role: 'user', content: user },
    ],
  };
}

async function post(
  { endpoint }: ChatModel,
  body: unknown,
  spent: ChatUsage,
  signal: AbortSignal,
): Promise<unknown> {
  const answer = await postJson(endpoint, '/chat/completions', body, signal, () => {
    spent.requests += 1;
  });
  const usage = member(answer, 'usage');
  spent.promptTokens += countOf(member(usage, 'prompt_tokens'));
  spent.answerTokens += countOf(member(usage, 'completion_tokens'));
  return answer;
}

function countOf(value: unknown): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : 0;
}

function contentOf(answer: unknown): string {
  const choices = member(answer, 'choices');
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  const message = member(choice, 'message');
  const refusal = member(message, 'refusal');
  const reason = member(choice, 'finish_reason');
  if ((typeof refusal === 'string' && refusal !== '') || reason === 'content_filter') {
    throw new DecoderFailure('refusal', 'the model refused to answer');
  }
  if (reason === 'length') throw new DecoderFailure('cutOff', 'the answer was cut off');
  const content = member(message, 'content');
  if (typeof content === 'string') return content;
  // Also if it requests a tool call: no tools were offered.
  throw new DecoderFailure('malformedAnswer', 'the model answered without content');
}
