import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';
import { LRUCache } from 'lru-cache';
import { isObject } from '../../base/is-object.js';
import { FairSlots } from '../../base/threads/fair-slots.js';
import { estimatedTokens } from '../../base/token-estimate.js';
import { InvalidArgument } from '../../model/facets/arguments.js';
import { ContentError } from '../content-error.js';
import { type HttpEndpoint, member, postJson } from '../http.js';
import type { PassageBudget } from './budget.js';

const FENCE = '```';
const THOUGHT = ['<think>', '</think>'] as const;

/**
 * Extracts the JSON from an answer. If the server does not enforce a schema, a model may put its reasoning before the
 * JSON or wrap it in code fences.
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

/** Returns the text between the first and the last code fence, without the language tag; null without two fences. */
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
  /** Schema of the answer; always validated here, even if the server claims to enforce it. */
  readonly schema: JsonSchema;
  /** True if the schema uses only features that servers can enforce. */
  readonly strict: boolean;
}

/** Usage as reported by the server. */
export interface ChatUsage {
  requests: number;
  promptTokens: number;
  answerTokens: number;
  /** Estimated tokens of requests for which the server reported none. */
  unreportedTokens: number;
}

const DEFAULT_MAX_TOKENS = 1_024;
/** Status codes that servers return for an unknown field in the request. */
const NOT_UNDERSTOOD: ReadonlySet<number | null> = new Set([400, 422, 501]);

/** Returns the request body, from which the cache key is computed. */
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
 * Sends one request, with temperature 0 and no tools. If the server rejects `response_format`, the request is repeated
 * without it, and later requests omit it.
 *
 * @returns the text of the answer
 * @throws DecoderFailure; the reason of `signal` if aborted
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

/** Parses an answer and validates it. @throws DecoderFailure */
export function answerOf(content: string, { schema }: ChatQuestion): unknown {
  const value = jsonOf(content);
  if (compiledSchema(schema)(value)) return value;
  throw new DecoderFailure('schema', 'the model answered something that the schema does not allow');
}

/** Moves the schema from `response_format` into the prompt. */
function withoutFormat({ response_format: _, ...body }: ChatBody, { system, user, schema }: ChatQuestion) {
  const prompt = `${system}\nThe schema of your answer is ${JSON.stringify(schema)}`;
  return {
    ...body,
    messages: [
      { role: 'system', content: prompt },
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
  const estimate = estimatedTokens(JSON.stringify(body));
  const answer = await postJson(endpoint, '/chat/completions', body, signal, () => {
    spent.requests += 1;
    spent.unreportedTokens += estimate;
  });
  const usage = member(answer, 'usage');
  const promptTokens = countOf(member(usage, 'prompt_tokens'));
  if (promptTokens > 0) spent.unreportedTokens -= estimate;
  spent.promptTokens += promptTokens;
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
  // A requested tool call also ends here, because no tools were offered.
  throw new DecoderFailure('malformedAnswer', 'the model answered without content');
}

const DECODER_FAULTS = [
  'endpoint',
  'malformedAnswer',
  'refusal',
  'cutOff',
  'schema',
  'quote',
  'range',
  'late',
  'budget',
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

/** An OpenAI-compatible `/v1/chat/completions` endpoint. */
export interface ChatEndpoint extends HttpEndpoint {
  readonly model: string;
  /** Maximum length of one answer, in tokens. Default: 1,024. */
  readonly maxTokens?: number;
  /** Maximum number of concurrent requests across all queries. Default: 4. */
  readonly concurrency?: number;
}

/** Limits on requests to a model, in addition to those of its endpoint. */
export interface ChatBounds {
  /** Maximum size of the answer cache; 0 turns it off. */
  readonly cacheBytes: number;
  readonly budget: PassageBudget | null;
}

const DEFAULT_CONCURRENCY = 4;

/**
 * One language model, shared by all queries of this process: its concurrency limit, answer cache, server capabilities,
 * and each subject's remaining budget for the day.
 */
export class ChatModel {
  readonly endpoint: ChatEndpoint;
  readonly places: number;
  readonly turns: FairSlots;
  readonly budget: PassageBudget | null;
  /** True if the server accepts `response_format`; becomes false once a request has succeeded only without it. */
  takesFormat = true;
  readonly #answers: LRUCache<string, string> | null;

  constructor(endpoint: ChatEndpoint, { cacheBytes, budget }: ChatBounds) {
    this.endpoint = endpoint;
    this.places = Math.max(1, endpoint.concurrency ?? DEFAULT_CONCURRENCY);
    this.turns = new FairSlots(this.places);
    this.budget = budget;
    this.#answers =
      cacheBytes === 0
        ? null
        : new LRUCache({ maxSize: cacheBytes, sizeCalculation: (text) => 2 * text.length + 200 });
  }

  /** Cache key of an answer: a hash of the endpoint's URL and the request body (model, limits, prompt, passage). */
  keyOf(body: unknown): string {
    return createHash('sha256')
      .update(JSON.stringify([this.endpoint.url, body]))
      .digest('base64');
  }

  cachedAnswer(key: string): string | null {
    return this.#answers?.get(key) ?? null;
  }

  cacheAnswer(key: string, content: string): void {
    this.#answers?.set(key, content);
  }
}

export type JsonSchema = Readonly<Record<string, unknown>>;

/**
 * Keywords allowed in a caller's schema. Patterns are excluded because matching them may never finish; formats and
 * references are excluded too.
 */
const KEYWORDS: ReadonlySet<string> = new Set([
  ...[
    'type',
    'title',
    'description',
    'enum',
    'const',
    'properties',
    'required',
    'additionalProperties',
    'items',
  ],
  ...['anyOf', 'minimum', 'maximum', 'minLength', 'maxLength', 'minItems', 'maxItems'],
]);
const DEEPEST = 8;
/** Maximum number of properties, items and alternatives: the time to compile `anyOf` is quadratic in their number. */
const MOST_PARTS = 200;

/**
 * Checks a caller's object schema against our limits.
 *
 * @throws InvalidArgument
 */
export function objectSchema(operator: string, schema: JsonSchema): JsonSchema {
  checkSchema(operator, schema, 0, { parts: 0 });
  const { type, properties } = schema;
  if (type !== 'object' || !isObject(properties) || Object.keys(properties).length === 0) {
    throw new InvalidArgument(operator, 'needs the schema of an object with `properties`');
  }
  try {
    compiledSchema(schema);
  } catch {
    throw new InvalidArgument(operator, 'got a schema that is not valid');
  }
  return schema;
}

/** @param size number of parts checked so far */
function checkSchema(operator: string, schema: unknown, depth: number, size: { parts: number }): void {
  if (!isObject(schema)) throw new InvalidArgument(operator, 'got a schema that is not valid');
  if (size.parts++ > MOST_PARTS)
    throw new InvalidArgument(operator, `takes a schema of ${MOST_PARTS} parts at most`);
  if (depth > DEEPEST) throw new InvalidArgument(operator, `takes a schema of ${DEEPEST} levels at most`);
  for (const keyword of Object.keys(schema)) {
    if (!KEYWORDS.has(keyword)) throw new InvalidArgument(operator, `takes no \`${keyword}\` in a schema`);
  }
  const { properties, items, anyOf, additionalProperties } = schema;
  if (properties !== undefined) {
    if (!isObject(properties)) throw new InvalidArgument(operator, 'got a schema that is not valid');
    const names = Object.keys(properties);
    if (names.includes('__proto__'))
      throw new InvalidArgument(operator, 'takes no property `__proto__` in a schema');
    for (const name of names) checkSchema(operator, properties[name], depth + 1, size);
  }
  if (items !== undefined) checkSchema(operator, items, depth + 1, size);
  if (isObject(additionalProperties)) checkSchema(operator, additionalProperties, depth + 1, size);
  if (Array.isArray(anyOf)) for (const one of anyOf) checkSchema(operator, one, depth + 1, size);
}

/** Loads Ajv on first use, since only decoders need it. */
const loadAjv = () => createRequire(import.meta.url)('ajv') as typeof import('ajv');

const MOST_COMPILED = 100;
const compiled = new LRUCache<string, (value: unknown) => boolean>({ max: MOST_COMPILED });

/** Compiles each distinct schema text once; the least recently used ones are evicted. */
function compiledSchema(schema: JsonSchema): (value: unknown) => boolean {
  const key = JSON.stringify(schema);
  const known = compiled.get(key);
  if (known !== undefined) return known;
  // One Ajv instance per schema, because an instance keeps everything it has compiled.
  const validate = new (loadAjv().Ajv)({ strict: false, validateFormats: false, logger: false }).compile(
    schema,
  );
  const check = (value: unknown): boolean => validate(value) === true;
  compiled.set(key, check);
  return check;
}
