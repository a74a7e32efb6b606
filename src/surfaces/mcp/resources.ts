import {
  type McpServer,
  ProtocolError,
  ProtocolErrorCode,
  ResourceTemplate,
} from '@modelcontextprotocol/server';
import { type Engine, EngineRefusal, objectIn } from './engine.js';
import { objectsIn } from './example-call.js';

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
    const index = objectIn((await asked(() => engine.schema({ index: true, from }, signal))).text);
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
  const { text } = await asked(() => engine.schema(selection, signal));
  const entities = objectIn(text)?.['entities'];
  const [entity]: readonly unknown[] = Array.isArray(entities) ? entities : [];
  if (entity === undefined)
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'there is no such resource');
  return JSON.stringify(entity);
}

/** The engine's refusal as an error of the protocol, with the problem as its data. */
async function asked<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (!(error instanceof EngineRefusal)) throw error;
    const code = error.status === 400 ? ProtocolErrorCode.InvalidParams : ProtocolErrorCode.InternalError;
    throw new ProtocolError(code, error.message, error.envelope ?? undefined);
  }
}
