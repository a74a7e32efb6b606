import {
  type McpServer,
  ProtocolError,
  ProtocolErrorCode,
  ResourceTemplate,
} from '@modelcontextprotocol/server';
import { identifier } from 'osl-compiler';
import { type Engine, EngineRefusal, parseObject } from './engine.js';

const URI = 'osl://entities/{name}';
const TYPE = 'application/json';
/** Maximum number of schema index pages in a resource list, about 8 KB each; `semantic_schema` returns all pages. */
const MAX_PAGES = 4;

/** Registers a resource per entity visible to the caller: its description, with sample queries that run unchanged. */
export function entityResources(server: McpServer, engine: Engine): void {
  const template = new ResourceTemplate(URI, {
    list: async ({ mcpReq }) => ({
      resources: (await entityNames(engine, mcpReq.signal)).map((name) => ({
        uri: uriOf(name),
        name,
        mimeType: TYPE,
      })),
    }),
  });
  const metadata = {
    title: 'An entity',
    description: 'Columns, keys, what is masked for this caller, and sample questions.',
    mimeType: TYPE,
  };
  server.registerResource('entity', template, metadata, async (uri, { name }, { mcpReq }) => {
    const text = await entityText(engine, decodeURIComponent(String(name)), mcpReq.signal);
    return { contents: [{ uri: uri.href, mimeType: TYPE, text }] };
  });
}

const uriOf = (name: string): string => URI.replace('{name}', encodeURIComponent(name));

async function entityNames(engine: Engine, signal: AbortSignal): Promise<readonly string[]> {
  const names: string[] = [];
  let from = 0;
  for (let page = 0; page < MAX_PAGES; page++) {
    const index = parseObject(
      (await withProtocolError(() => engine.schema({ index: true, from }, signal))).text,
    );
    const objects = indexedObjects(index);
    const entities = objects.filter(({ kind }) => kind === 'entity');
    names.push(...entities.map(({ name }) => name));
    const next = index?.['next'];
    // The index lists entities first, so any other object means that all entities have been read.
    if (entities.length < objects.length || typeof next !== 'number') break;
    from = next;
  }
  return names;
}

async function entityText(engine: Engine, name: string, signal: AbortSignal): Promise<string> {
  const selection = { names: [name], parts: ['entities'] };
  const { text } = await withProtocolError(() => engine.schema(selection, signal));
  const entities = parseObject(text)?.['entities'];
  const [entity]: readonly unknown[] = Array.isArray(entities) ? entities : [];
  if (entity === undefined)
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'there is no such resource');
  return JSON.stringify(entity);
}

/** Runs `call`; converts the engine's refusal to a protocol error with the problem as its data. */
async function withProtocolError<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (!(error instanceof EngineRefusal)) throw error;
    const code = error.status === 400 ? ProtocolErrorCode.InvalidParams : ProtocolErrorCode.InternalError;
    throw new ProtocolError(code, error.message, error.envelope ?? undefined);
  }
}

export type ToolName = 'semantic_query' | 'semantic_explain' | 'semantic_schema';

/** Example arguments that work on any server, for callers who see no objects in the schema. */
const GENERAL_EXAMPLES: Readonly<Record<ToolName, object>> = {
  semantic_query: { osql: 'select $1::int4 + $2::int4 as sum', parameters: [1, 2] },
  semantic_explain: { osql: 'select 1 as one' },
  semantic_schema: { parts: ['forms'] },
};

/** Matches JSON Pointers to arguments that belong to a metrics query. */
const METRICS_POINTER = /^\/(?:metrics|group_by|where|order_by|limit|time_constraint)(?:\/|$)/;

/**
 * Returns example arguments for a call of `tool` that this caller can make unchanged, over objects visible to the
 * caller.
 *
 * @param pointer JSON Pointer to the argument at fault; null if it is not known
 */
export async function exampleCall(
  engine: Engine,
  tool: ToolName,
  pointer: string | null,
  signal: AbortSignal,
): Promise<object> {
  const generalExample = GENERAL_EXAMPLES[tool];
  if (pointer?.startsWith('/parameters') === true || pointer?.startsWith('/parts') === true)
    return generalExample;
  // A caller who may not see the schema, or has reached the rate limit, gets the general example.
  const index = await engine.schema({ index: true, from: 0 }, signal).catch(() => null);
  const objects = indexedObjects(index === null ? null : parseObject(index.text));
  const entity = objects.find(({ kind }) => kind === 'entity')?.name;
  const metric = objects.find(({ kind }) => kind === 'metric')?.name;
  if (tool === 'semantic_schema') return entity === undefined ? generalExample : { names: [entity] };
  if (pointer !== null && METRICS_POINTER.test(pointer) && metric !== undefined)
    return { metrics: [metric], limit: 10 };
  return entity === undefined
    ? generalExample
    : { osql: `select * from osl.entities.${identifier(entity)} limit 10` };
}

interface IndexedObject {
  readonly kind: string;
  readonly name: string;
}

/** Returns the objects on a page of the schema index; an empty list if the page could not be read. */
function indexedObjects(index: Readonly<Record<string, unknown>> | null): readonly IndexedObject[] {
  const objects = index?.['objects'];
  if (!Array.isArray(objects)) return [];
  return objects.flatMap((object: unknown) => {
    const { kind, name } = Object(object) as { readonly kind?: unknown; readonly name?: unknown };
    return typeof kind === 'string' && typeof name === 'string' ? [{ kind, name }] : [];
  });
}
