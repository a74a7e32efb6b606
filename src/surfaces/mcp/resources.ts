import {
  type McpServer,
  ProtocolError,
  ProtocolErrorCode,
  ResourceTemplate,
} from '@modelcontextprotocol/server';
import { identifier } from 'osl-compiler';
import { type Engine, EngineRefusal, objectIn } from './engine.js';

const URI = 'osl://entities/{name}';
const TYPE = 'application/json';
/** Maximum number of pages of the index in one list, about 8 KB each. `semantic_schema` has the others. */
const MOST_PAGES = 4;

/** Registers a resource for each entity that the caller may see: its description, with questions that run as they are. */
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
  const about = {
    title: 'An entity',
    description: 'Columns, keys, what is masked for this caller, and sample questions.',
    mimeType: TYPE,
  };
  server.registerResource('entity', template, about, async (uri, { name }, { mcpReq }) => {
    const text = await entityText(engine, decodeURIComponent(String(name)), mcpReq.signal);
    return { contents: [{ uri: uri.href, mimeType: TYPE, text }] };
  });
}

const uriOf = (name: string): string => URI.replace('{name}', encodeURIComponent(name));

async function entityNames(engine: Engine, signal: AbortSignal): Promise<readonly string[]> {
  const names: string[] = [];
  let from = 0;
  for (let page = 0; page < MOST_PAGES; page++) {
    const index = objectIn(
      (await withProtocolError(() => engine.schema({ index: true, from }, signal))).text,
    );
    const objects = objectsIn(index);
    const entities = objects.filter(({ kind }) => kind === 'entity');
    names.push(...entities.map(({ name }) => name));
    const next = index?.['next'];
    // Entities come first.
    if (entities.length < objects.length || typeof next !== 'number') break;
    from = next;
  }
  return names;
}

async function entityText(engine: Engine, name: string, signal: AbortSignal): Promise<string> {
  const selection = { names: [name], parts: ['entities'] };
  const { text } = await withProtocolError(() => engine.schema(selection, signal));
  const entities = objectIn(text)?.['entities'];
  const [entity]: readonly unknown[] = Array.isArray(entities) ? entities : [];
  if (entity === undefined)
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'there is no such resource');
  return JSON.stringify(entity);
}

/** The engine's refusal as an error of the protocol, with the problem as its data. */
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

/** Arguments that run on any server, for callers to whom the schema shows nothing. */
const ANYWHERE: Readonly<Record<ToolName, object>> = {
  semantic_query: { osql: 'select $1::int4 + $2::int4 as sum', parameters: [1, 2] },
  semantic_explain: { osql: 'select 1 as one' },
  semantic_schema: { parts: ['forms'] },
};

/** Arguments of `metrics`, which a question with one of them is about. */
const OF_METRICS = /^\/(?:metrics|group_by|where|order_by|limit|time_constraint)(?:\/|$)/;

/**
 * Arguments of a call of `tool` that this caller can make as they are, over objects that the caller may see.
 *
 * @param pointer JSON Pointer to the argument at fault; null if it is not known
 */
export async function exampleCall(
  engine: Engine,
  tool: ToolName,
  pointer: string | null,
  signal: AbortSignal,
): Promise<object> {
  const anywhere = ANYWHERE[tool];
  if (pointer?.startsWith('/parameters') === true || pointer?.startsWith('/parts') === true) return anywhere;
  // A caller who may not see the schema, or asks too often, gets the general example.
  const index = await engine.schema({ index: true, from: 0 }, signal).catch(() => null);
  const objects = objectsIn(index === null ? null : objectIn(index.text));
  const entity = objects.find(({ kind }) => kind === 'entity')?.name;
  const metric = objects.find(({ kind }) => kind === 'metric')?.name;
  if (tool === 'semantic_schema') return entity === undefined ? anywhere : { names: [entity] };
  if (pointer !== null && OF_METRICS.test(pointer) && metric !== undefined)
    return { metrics: [metric], limit: 10 };
  return entity === undefined
    ? anywhere
    : { osql: `select * from osl.entities.${identifier(entity)} limit 10` };
}

interface IndexedObject {
  readonly kind: string;
  readonly name: string;
}

/** The objects of a page of the index. */
function objectsIn(index: Readonly<Record<string, unknown>> | null): readonly IndexedObject[] {
  const objects = index?.['objects'];
  if (!Array.isArray(objects)) return [];
  return objects.flatMap((one: unknown) => {
    const { kind, name } = Object(one) as { readonly kind?: unknown; readonly name?: unknown };
    return typeof kind === 'string' && typeof name === 'string' ? [{ kind, name }] : [];
  });
}
