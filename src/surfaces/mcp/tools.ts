import { McpServer, type ServerContext } from '@modelcontextprotocol/server';
import { type Document, type Engine, objectIn, type Question, unreachable } from './engine.js';
import { excerptOf } from './excerpt.js';
import { refusedResult, resultOf } from './results.js';
import { PLAN, QUESTION, ROWS, SCHEMA, SCHEMA_WISH, type SchemaWish } from './tool-shapes.js';

export interface ToolOptions {
  readonly version: string;
  /** Bytes of JSON that one result carries at most; the text beside the structured content has as many again. */
  readonly maxBytes?: number;
}

export const DEFAULT_MAX_BYTES = 131_072;

const INSTRUCTIONS = `A governed semantic layer. Read semantic_schema first: it lists what this caller may ask about, with
examples that run as they are. Write OSL-SQL (PostgreSQL's SELECT over osl.entities.<name>, RETRIEVE and TRAVERSE),
check it with semantic_explain, run it with semantic_query, which takes a metrics body too. A value that reads [redacted] is masked for this caller;
asking in another way does not unmask it. Where a result says truncated, aggregate, filter or add LIMIT.`;

const READ_ONLY = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false };

/**
 * The three tools over an engine. They add nothing and hide nothing: the engine decides who may ask, limits,
 * masks and records, and what it refuses is an error here, with its status and envelope.
 */
export function createSemanticServer(engine: Engine, options: ToolOptions): McpServer {
  const server = new McpServer(
    { name: 'osl-gateway', version: options.version },
    { instructions: INSTRUCTIONS, capabilities: { tools: { listChanged: false } } },
  );
  const maxBytes = options.maxBytes ?? DEFAULT_MAX_BYTES;
  server.registerTool(
    'semantic_query',
    {
      title: 'Ask the semantic layer',
      description:
        'Runs one question as the caller: `osql` (structured, RETRIEVE, TRAVERSE, Joint or cross-modal join), `sql`, or `metrics` with what goes with it.',
      inputSchema: QUESTION,
      outputSchema: ROWS,
      annotations: READ_ONLY,
    },
    (question, context) => resultOrRefusal(() => query(engine, question, maxBytes, context)),
  );
  server.registerTool(
    'semantic_explain',
    {
      title: 'Check a question',
      description: 'Validates and plans one question without running it. Reads no data.',
      inputSchema: QUESTION,
      outputSchema: PLAN,
      annotations: READ_ONLY,
    },
    (question, context) => resultOrRefusal(() => explain(engine, question, maxBytes, context)),
  );
  server.registerTool(
    'semantic_schema',
    {
      title: 'What there is to ask about',
      description:
        'Entities, columns, keys, metrics, text facets, relationships, functions and forms that the caller may use, with examples.',
      inputSchema: SCHEMA_WISH,
      outputSchema: SCHEMA,
      annotations: READ_ONLY,
    },
    (wish, context) => resultOrRefusal(() => schema(engine, wish, maxBytes, context)),
  );
  return server;
}

async function resultOrRefusal(call: () => Promise<ReturnType<typeof resultOf>>) {
  try {
    return await call();
  } catch (error) {
    return refusedResult(error);
  }
}

async function query(engine: Engine, question: Question, maxBytes: number, context: ServerContext) {
  const { rows, trailer } = await engine.query(question, maxBytes, context.mcpReq.signal);
  const { request_id: id, row_count: available, truncated, ...rest } = trailer;
  const cut = typeof available === 'number' && rows.length < available;
  const held = truncated === true;
  // Where the engine itself held rows back, nobody knows how many there are.
  const of = held ? `more than ${available}` : `${available}`;
  const hint = cut
    ? `${rows.length} of ${of} rows fit into one result: select fewer columns, filter, aggregate, or page with ORDER BY, LIMIT and OFFSET`
    : held
      ? 'the engine held rows back: filter, aggregate or add LIMIT'
      : null;
  return resultOf({
    request_id: typeof id === 'string' ? id : null,
    row_count: rows.length,
    truncated: cut || held,
    ...(hint === null ? {} : { hint }),
    ...(cut && !held ? { available_rows: available } : {}),
    rows,
    ...rest,
  });
}

async function explain(engine: Engine, question: Question, maxBytes: number, context: ServerContext) {
  const document = await engine.explain(question, context.mcpReq.signal);
  const { text, requestId: id } = document;
  const fields = fieldsIn(document);
  if (Buffer.byteLength(text) <= maxBytes) {
    return resultOf({ ...fields, request_id: id, row_count: 0, truncated: false });
  }
  const { form, objects } = fields;
  const hint = 'the question is valid, but its plan is larger than one result: split the question';
  return resultOf({ request_id: id, row_count: 0, truncated: true, hint, form, objects });
}

async function schema(engine: Engine, wish: SchemaWish, maxBytes: number, context: ServerContext) {
  const document = await engine.schema(context.mcpReq.signal);
  const { schema: excerpt, truncated, hint } = excerptOf(fieldsIn(document), wish, maxBytes);
  const told = hint === null ? {} : { hint };
  return resultOf({ request_id: document.requestId, row_count: 0, truncated, ...told, schema: excerpt });
}

function fieldsIn({ text }: Document) {
  const fields = objectIn(text);
  if (fields === null) throw unreachable();
  return fields;
}
