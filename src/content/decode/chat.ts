import { ContentError } from '../content-error.js';
import { type Endpoint, postJson } from '../http.js';
import { compiledSchema, type JsonSchema } from './schema.js';

/** An OpenAI-compatible `/v1/chat/completions`. */
export interface ChatEndpoint extends Endpoint {
  readonly model: string;
  /** Of one answer. Default 1,024. */
  readonly maxTokens?: number;
  /** Requests at a time. Default 4. */
  readonly concurrency?: number;
}

/** One question about one passage. */
export interface ChatQuestion {
  readonly system: string;
  readonly user: string;
  /** What the answer must be; checked here, whatever the server says of it. */
  readonly schema: JsonSchema;
  /** Whether the schema keeps to what servers can enforce. */
  readonly strict: boolean;
}

/** Why one row has no value. */
export const DECODER_FAULTS = [
  'endpoint',
  'malformedAnswer',
  'refusal',
  'cutOff',
  'schema',
  'quote',
  'range',
] as const;
export type DecoderFault = (typeof DECODER_FAULTS)[number];

export class DecoderFailure extends Error {
  override readonly name = 'DecoderFailure';
  readonly fault: DecoderFault;

  constructor(fault: DecoderFault, message: string) {
    super(message);
    this.fault = fault;
  }
}

const DEFAULT_MAX_TOKENS = 1_024;

/**
 * Asks once, with temperature 0 and no tools, and checks the answer.
 *
 * @throws DecoderFailure; what `signal` aborts with
 */
export async function askChat(
  endpoint: ChatEndpoint,
  question: ChatQuestion,
  signal?: AbortSignal,
): Promise<unknown> {
  const body = {
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
  const answer = await postJson(endpoint, '/chat/completions', body, signal).catch((error: unknown) => {
    if (!(error instanceof ContentError)) throw error;
    throw new DecoderFailure(
      error.code === 'malformedAnswer' ? 'malformedAnswer' : 'endpoint',
      error.message,
    );
  });
  const value = parseJson(contentOf(answer));
  if (!compiledSchema(question.schema)(value)) {
    throw new DecoderFailure('schema', 'the model answered something that the schema does not allow');
  }
  return value;
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
  // Also where it wants to call a tool: it was given none.
  throw new DecoderFailure('malformedAnswer', 'the model answered without content');
}

function parseJson(content: string): unknown {
  try {
    return JSON.parse(content);
  } catch {
    throw new DecoderFailure('malformedAnswer', 'the model answered something that is not JSON');
  }
}

function member(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;
}
