import { identifier } from 'osl-compiler';
import { type Engine, objectIn } from './engine.js';

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
export function objectsIn(index: Readonly<Record<string, unknown>> | null): readonly IndexedObject[] {
  const objects = index?.['objects'];
  if (!Array.isArray(objects)) return [];
  return objects.flatMap((one: unknown) => {
    const { kind, name } = Object(one) as { readonly kind?: unknown; readonly name?: unknown };
    return typeof kind === 'string' && typeof name === 'string' ? [{ kind, name }] : [];
  });
}
