import {
  acceptedContent,
  type CallToolResult,
  CLIENT_CAPABILITIES_META_KEY,
  fromJsonSchema,
  inputRequired,
  McpServer,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { METRICS_MEMBERS } from '../rest/bodies/metrics.js';
import { MOST_NAMES, SCHEMA_PARTS } from '../rest/parameters.js';
import { jsonPointer, shownName, unknownName } from '../rest/problem.js';
import { type JsonShape, text } from '../rest/shape.js';
import {
  type Engine,
  EngineRefusal,
  type JsonDocument,
  parseObject,
  type QueryJson,
  unreachable,
} from './engine.js';
import { entityResources, exampleCall, type ToolName } from './resources.js';

interface ResultHead {
  readonly request_id: string | null;
  readonly row_count: number;
  /** True if something was omitted because of a limit of the engine or of the result. */
  readonly truncated: boolean;
}

function resultOf(content: ResultHead & Readonly<Record<string, unknown>>): CallToolResult {
  return { content: [{ type: 'text', text: JSON.stringify(content) }], structuredContent: { ...content } };
}

/** Returns an error result with status and error envelope, so that a refusal never looks like an empty success. */
async function refusedResult(error: unknown, exampleFor: ExampleFor): Promise<CallToolResult> {
  const refusal =
    error instanceof EngineRefusal
      ? error
      : new EngineRefusal(null, null, null, error instanceof Error ? error.message : 'the call failed');
  const { envelope } = refusal;
  const path = typeof envelope?.['pointer'] === 'string' ? envelope['pointer'] : null;
  // An error with a position but no pointer concerns the text of the query, not the arguments.
  const concernsArguments =
    ARGUMENT_FAULTS.has(envelope?.['code']) && (path !== null || (envelope?.['position'] ?? null) === null);
  const content = {
    request_id: refusal.requestId,
    row_count: 0,
    truncated: false,
    status: refusal.status,
    message: refusal.message,
    problem: envelope,
    ...(concernsArguments && { path, example: await exampleFor(path) }),
  };
  return { ...resultOf(content), isError: true };
}

/** Error codes for faulty arguments: E0511 for malformed ones, E0513 for a mixture of query forms. */
const ARGUMENT_FAULTS: ReadonlySet<unknown> = new Set(['E0511', 'E0513']);

/** Returns the arguments of a correct call as an example, for a caller whose argument at `pointer` was wrong. */
type ExampleFor = (pointer: string | null) => Promise<object>;

export interface ToolOptions {
  readonly version: string;
  /** Maximum bytes of JSON per result; the accompanying text may take as many again. */
  readonly maxBytes?: number;
  /**
   * Returns the call's arguments exactly as sent; null if parsing loses no precision. Needed because the protocol
   * library parses numbers as doubles.
   */
  readonly rawArguments?: (id: string | number) => string | null;
}

const DEFAULT_MAX_BYTES = 131_072;

const INSTRUCTIONS = `A governed semantic layer: each answer contains only what this caller may see. Call semantic_schema first, without
arguments, for a list of what can be queried; call it with \`names\` for columns, keys and examples that run unchanged, and with \`parts\` for
forms, functions and operators. Write OSL-SQL (PostgreSQL's SELECT over osl.entities.<name>, RETRIEVE and TRAVERSE), check it with
semantic_explain, and run it with semantic_query, which also accepts a metrics body. A value that reads [redacted] is masked for this caller;
no other query unmasks it. If a result says truncated, aggregate, filter or add LIMIT.`;

const READ_ONLY = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false };

/**
 * Creates a server with the three tools. The engine authorizes, limits, masks and records; its refusals become error
 * results with status and envelope.
 */
export function createSemanticServer(engine: Engine, options: ToolOptions): McpServer {
  const server = new McpServer(
    { name: 'osl-gateway', version: options.version },
    { instructions: INSTRUCTIONS, capabilities: { tools: { listChanged: false } } },
  );
  const maxBytes = options.maxBytes ?? DEFAULT_MAX_BYTES;
  const example =
    (tool: ToolName, { mcpReq }: ServerContext): ExampleFor =>
    (pointer) =>
      exampleCall(engine, tool, pointer, mcpReq.signal);
  server.registerTool(
    'semantic_query',
    {
      title: 'Query the semantic layer',
      description:
        'Runs one query as the caller: `osql` (structured, RETRIEVE, TRAVERSE, Joint or cross-modal join), `sql`, or `metrics` with the arguments that belong to it.',
      inputSchema: QUESTION,
      outputSchema: ROWS,
      annotations: READ_ONLY,
    },
    (toolInput, context) =>
      resultOrRefusal(example('semantic_query', context), async () => {
        const question = await queryJsonOf(engine, toolInput, context, options);
        return query(engine, question, maxBytes, context).catch((rejection: unknown) => {
          if (rejection instanceof EngineRefusal && mayAskReason(rejection, context))
            return reasonRequest(rejection);
          throw rejection;
        });
      }),
  );
  server.registerTool(
    'semantic_explain',
    {
      title: 'Check a query',
      description: 'Validates and plans one query without running it. Reads no data.',
      inputSchema: QUESTION,
      outputSchema: PLAN,
      annotations: READ_ONLY,
    },
    (toolInput, context) =>
      resultOrRefusal(example('semantic_explain', context), async () =>
        explain(engine, await queryJsonOf(engine, toolInput, context, options), maxBytes, context),
      ),
  );
  server.registerTool(
    'semantic_schema',
    {
      title: 'List what can be queried',
      description:
        'Without arguments: an index, in pages, of the entities, text facets, metrics and relationships that the caller may use. With `names`: the full descriptions of these objects, with examples. With `parts`: whole lists, such as the functions.',
      inputSchema: SCHEMA_SELECTION,
      outputSchema: SCHEMA,
      annotations: READ_ONLY,
    },
    (toolInput, context) =>
      resultOrRefusal(example('semantic_schema', context), () =>
        schema(engine, toolInput, maxBytes, context),
      ),
  );
  entityResources(server, engine);
  return server;
}

type ToolInput = Readonly<Record<string, unknown>>;

async function requireKnownArguments(
  engine: Engine,
  action: 'query' | 'schema',
  toolInput: ToolInput,
  known: readonly string[],
): Promise<void> {
  const unknownArgument = Object.keys(toolInput).find((name) => !known.includes(name));
  if (unknownArgument === undefined) return;
  const detail = `the tool has no argument ${shownName(unknownArgument)}`;
  throw await engine.refuse(
    action,
    unknownName(detail, unknownArgument, known).about(jsonPointer([unknownArgument])),
  );
}

async function queryJsonOf(
  engine: Engine,
  toolInput: ToolInput,
  { mcpReq }: ServerContext,
  { rawArguments }: ToolOptions,
): Promise<QueryJson> {
  await requireKnownArguments(engine, 'query', toolInput, QUESTION_NAMES);
  return rawArguments?.(mcpReq.id) ?? JSON.stringify(toolInput);
}

async function resultOrRefusal<T>(exampleFor: ExampleFor, call: () => Promise<T>) {
  try {
    return await call();
  } catch (error) {
    return refusedResult(error, exampleFor);
  }
}

/** Members of `_meta`: the task to which a call belongs, and the reason with which to request a needed approval. */
const TASK = 'osl/task';
const APPROVAL_REASON = 'osl/approval_reason';

/** Returns a text stated in `_meta`; null if missing. Other types become an empty text, which is refused later. */
function metaText(context: ServerContext, member: typeof TASK | typeof APPROVAL_REASON): string | null {
  const text = context.mcpReq._meta?.[member];
  if (text === undefined) return null;
  return typeof text === 'string' ? text : '';
}

const REASON = 'approval_reason';

/**
 * True if the call needs an approval and its client can ask the user for a reason but has not done so. Clients declare
 * this ability in each call, from protocol revision 2026-07-28 on.
 */
function mayAskReason({ envelope }: EngineRefusal, { mcpReq }: ServerContext): boolean {
  const { envelope: callEnvelope, inputResponses, _meta: meta } = mcpReq;
  if (envelope?.['code'] !== 'E0535' || meta?.[APPROVAL_REASON] !== undefined) return false;
  const capabilities = new Map(Object.entries(callEnvelope ?? {})).get(CLIENT_CAPABILITIES_META_KEY);
  const canAsk = typeof capabilities === 'object' && capabilities !== null && 'elicitation' in capabilities;
  return canAsk && inputResponses?.[REASON] === undefined;
}

/** Returns a result that asks the client's user for the reason; the client then repeats the call with it. */
function reasonRequest({ message }: EngineRefusal) {
  return inputRequired({
    inputRequests: {
      [REASON]: inputRequired.elicit({
        message: `${message}. To request it, say what the data is for: an approver reads this.`,
        requestedSchema: {
          type: 'object',
          properties: { [REASON]: { type: 'string', title: 'Reason', maxLength: 500 } },
          required: [REASON],
        },
      }),
    },
  });
}

/** Returns the reason that the user gave when asked for it; null if there is none. */
function givenReason({ mcpReq }: ServerContext): string | null {
  const reason = acceptedContent(mcpReq.inputResponses, REASON)?.[REASON];
  return typeof reason === 'string' ? reason : null;
}

/** Member of `_meta`: `true` in a call requests a receipt, which the result contains under the same name. */
const RECEIPT = 'osl/receipt';

async function query(engine: Engine, question: QueryJson, maxBytes: number, context: ServerContext) {
  const { signal, _meta: meta } = context.mcpReq;
  const task = metaText(context, TASK);
  const approvalReason = metaText(context, APPROVAL_REASON) ?? givenReason(context);
  const options = { maxBytes, receipt: meta?.[RECEIPT] === true, task, approvalReason };
  const { rows, trailer } = await engine.query(question, options, signal);
  const { request_id: id, row_count: available, truncated, receipt, ...rest } = trailer;
  const isCut = typeof available === 'number' && rows.length < available;
  const truncatedByEngine = truncated === true;
  // If the engine truncated the rows, their total number is unknown.
  const total = truncatedByEngine ? `more than ${available}` : `${available}`;
  const hint = isCut
    ? `${rows.length} of ${total} rows fit into one result: select fewer columns, filter, aggregate, or page with ORDER BY, LIMIT and OFFSET`
    : truncatedByEngine
      ? 'the engine held rows back: filter, aggregate or add LIMIT'
      : null;
  const result = resultOf({
    request_id: typeof id === 'string' ? id : null,
    row_count: rows.length,
    truncated: isCut || truncatedByEngine,
    ...(hint === null ? {} : { hint }),
    ...(isCut && !truncatedByEngine ? { available_rows: available } : {}),
    rows,
    ...rest,
    ...maskedMember(trailer),
  });
  return receipt === undefined ? result : { ...result, _meta: { [RECEIPT]: receipt } };
}

/** The masked columns and fields of an answer, with the way to request access; an empty object if nothing is masked. */
function maskedMember(trailer: Readonly<Record<string, unknown>>): object {
  const namesIn = (member: string): readonly string[] => {
    const names = trailer[member];
    return Array.isArray(names) ? names.map(String) : [];
  };
  const columns = [...namesIn('redacted_columns'), ...namesIn('redacted_conditions')];
  const fields = namesIn('redacted_fields');
  if (columns.length === 0 && fields.length === 0) return {};
  const object = columns[0] === undefined ? 'osl.facets.<facet>' : `osl.entities.${columns[0]}`;
  const ask = `No other query shows more. To ask the owner of the policy for access: POST /osl/access-requests with {"object": "${object}", "reason": "…"}, or osl why ${object} --request "…".`;
  return { masked: { columns, fields, ask } };
}

async function explain(engine: Engine, question: QueryJson, maxBytes: number, context: ServerContext) {
  const document = await engine.explain(question, metaText(context, TASK), context.mcpReq.signal);
  const { text, requestId: id } = document;
  const fields = documentFields(document);
  if (Buffer.byteLength(text) <= maxBytes) {
    return resultOf({ ...fields, request_id: id, row_count: 0, truncated: false });
  }
  const { form, objects } = fields;
  const hint = 'the question is valid, but its plan is larger than one result: split the question';
  return resultOf({ request_id: id, row_count: 0, truncated: true, hint, form, objects });
}

async function schema(engine: Engine, toolInput: ToolInput, maxBytes: number, context: ServerContext) {
  await requireKnownArguments(engine, 'schema', toolInput, SCHEMA_NAMES);
  const { from, ...filters } = toolInput;
  const isIndex = Object.keys(filters).length === 0;
  const selection = isIndex ? { index: true, from: from ?? 0 } : toolInput;
  const document = await engine.schema(selection, context.mcpReq.signal);
  const head = { request_id: document.requestId, row_count: 0 };
  if (Buffer.byteLength(document.text) > maxBytes) {
    const hint =
      'this part of the schema is larger than one result: ask for fewer `names`, or one of `parts` with `names`';
    return resultOf({ ...head, truncated: true, hint, schema: {} });
  }
  const fields = documentFields(document);
  const hasMore = isIndex && typeof fields['next'] === 'number';
  const hint = hasMore
    ? `there is more: ask again with from ${fields['next']}; with \`names\` for columns, keys and examples`
    : 'ask with `names` for columns, keys and examples, with `parts` for forms, functions and operators';
  return resultOf({ ...head, truncated: hasMore, ...(isIndex ? { hint } : {}), schema: fields });
}

function documentFields({ text }: JsonDocument) {
  const fields = parseObject(text);
  if (fields === null) throw unreachable();
  return fields;
}

type Properties = Readonly<Record<string, unknown>>;
type ToolArguments = Readonly<Record<string, unknown>>;

/** Keywords that some JSON Schema readers refuse or interpret differently; the engine checks them itself. */
const NONPORTABLE_KEYWORDS = /^(?:pattern|title|x-.*)$/;

/** Removes keywords that some readers of JSON Schema (2020-12) do not support. */
function portable(shape: unknown): unknown {
  if (Array.isArray(shape)) return shape.map(portable);
  if (typeof shape !== 'object' || shape === null) return shape;
  return Object.fromEntries(
    Object.entries(shape).flatMap(([name, value]) =>
      name === 'properties'
        ? [
            [
              name,
              Object.fromEntries(Object.entries(Object(value)).map(([key, shape]) => [key, portable(shape)])),
            ],
          ]
        : NONPORTABLE_KEYWORDS.test(name)
          ? []
          : [[name, portable(value)]],
    ),
  );
}

/** Input schema, published for clients only: tools validate their arguments themselves. */
function input(properties: Properties): ReturnType<typeof fromJsonSchema<ToolArguments>> {
  const schema = { type: 'object', properties: portable({ ...properties }), additionalProperties: false };
  const converted = fromJsonSchema<ToolArguments>(schema as Parameters<typeof fromJsonSchema>[0]);
  const standard = converted['~standard'];
  // Accept everything here: the engine refuses invalid arguments with an error code, envelope and audit record.
  const validate = (value: unknown) => ({ value: value as ToolArguments }); // cast: the protocol guarantees an object
  return { ...converted, '~standard': { ...standard, validate } };
}

const { metrics, group_by, where, order_by, limit, time_constraint } = METRICS_MEMBERS;

const QUESTION_ARGUMENTS: Properties = {
  osql: text('One SELECT in OSL-SQL.'),
  sql: text(
    'Instead of `osql`: one SELECT over the tables that the manifest allows, under their original names.',
  ),
  parameters: {
    type: 'array',
    items: { type: ['string', 'number', 'boolean', 'null'] },
    description:
      'Values of $1, $2 and so on, for `osql` and `sql`. Numbers with more than 15 digits must be sent as strings.',
  },
  metrics: {
    ...metrics,
    description: 'Instead of `osql`: names of metrics. The arguments below belong to it.',
  },
  group_by,
  where,
  order_by,
  limit,
  time_constraint,
};

// The engine checks that exactly one of `osql`, `sql` and `metrics` is given: many clients do not support `oneOf`
// here.
const QUESTION = input(QUESTION_ARGUMENTS);

const NAMES: JsonShape = { type: 'array', items: { type: 'string' }, maxItems: MOST_NAMES };
const SCHEMA_ARGUMENTS: Properties = {
  names: {
    ...NAMES,
    description:
      'Return only the entities, facets, metrics, relationships, functions and operators with these names.',
  },
  parts: {
    ...NAMES,
    items: { type: 'string', enum: [...SCHEMA_PARTS] },
    description:
      'Return only these lists. `functions` and `operators` are long; `forms` describes the forms of queries.',
  },
  from: {
    type: 'integer',
    minimum: 0,
    description:
      'Start of a page of the index: `next` of the previous page. Only without the other arguments.',
  },
};

const SCHEMA_SELECTION = input(SCHEMA_ARGUMENTS);

const QUESTION_NAMES: readonly string[] = Object.keys(QUESTION_ARGUMENTS);
const SCHEMA_NAMES: readonly string[] = Object.keys(SCHEMA_ARGUMENTS);

const HEAD = {
  request_id: { type: ['string', 'null'], description: 'ID of this request, also in the audit log.' },
  row_count: { type: 'integer', description: 'Number of rows in this result.' },
  truncated: {
    type: 'boolean',
    description: 'True if something was left out; `hint` says how to request less.',
  },
  hint: { type: 'string', description: 'How to ask for the rest, or for less.' },
} as const;

function output(properties: Properties) {
  return fromJsonSchema<Record<string, unknown>>({
    type: 'object',
    properties: { ...HEAD, ...properties },
    required: ['request_id', 'row_count', 'truncated'],
  });
}

const ROWS = output({
  form: {
    type: 'string',
    description:
      'Form of the query: `structured`, `retrieve`, `traverse`, `joint`, `cross_modal`, `sql` or `metrics`.',
  },
  columns: {
    type: 'array',
    items: { type: 'object' },
    description: 'Name, type and origin of each column, and whether it may be redacted.',
  },
  rows: { type: 'array', items: { type: 'object' }, description: 'The rows, as objects by column name.' },
  masked: {
    type: 'object',
    description:
      'What is masked for this caller: `columns` as entity.column, `fields` of passages, and how to ask for access. Absent if nothing is.',
  },
  available_rows: {
    type: 'integer',
    description: 'Number of rows that the engine returned, if not all of them fit into `rows`.',
  },
});
const PLAN = output({
  plan: { type: 'object', description: 'What the query would do, without values.' },
  columns: { type: 'array', description: 'Name, type and origin of each column of the answer.' },
  objects: { type: 'array', description: 'The entities, facets and metrics that the query uses.' },
});
const SCHEMA = output({
  schema: { type: 'object', description: 'A page of the index, or the requested objects and lists.' },
});
