import type { Part } from '../part.js';
import { attempt, nameOf, parseExpression } from '../sql/expression.js';

/** An entity or a dimension of a semantic model, as either form of dbt's YAML states it. */
export interface ModelElement {
  readonly name: string;
  /** Its type, in lower case. */
  readonly kind: string;
  readonly expr: string;
  /** The column that it is; null if it is computed. */
  readonly physical: string | null;
  readonly description: string | null;
  /** Grain of a time, with the place that states it. */
  readonly grain: { readonly text: string; readonly part: Part; readonly key: string } | null;
  /** The part that may have `validity_params`. */
  readonly validity: Part | null;
  /** The part with its keys; a column if it is stated by its type alone, as in `dimension: time`. */
  readonly part: Part;
  /** Key of the type in `part`. */
  readonly kindKey: 'type' | 'entity' | 'dimension';
}

/** Reports an element as lost, and only it if it is one key of a column. */
export function loseElement({ part, kindKey }: ModelElement, reason: string): void {
  if (kindKey === 'type') part.loseAll(reason);
  else part.lose(kindKey, reason);
}

/** An item of `entities` or `dimensions` of a semantic model at the top of a file. */
export function statedElement(part: Part): ModelElement {
  const params = part.child('type_params');
  const grain = params?.text('time_granularity')?.toLowerCase() ?? null;
  return {
    ...ownElement(part),
    grain: params === null || grain === null ? null : { text: grain, part: params, key: 'time_granularity' },
    validity: params,
  };
}

/** An item of `derived_semantics`. */
export function derivedElement(part: Part): ModelElement {
  const grain = part.text('granularity')?.toLowerCase() ?? null;
  return {
    ...ownElement(part),
    grain: grain === null ? null : { text: grain, part, key: 'granularity' },
    validity: part,
  };
}

function ownElement(part: Part): Omit<ModelElement, 'grain' | 'validity'> {
  const expr = exprOf(part, part.needText('name'));
  return {
    name: part.needText('name'),
    kind: (part.text('type') ?? '').toLowerCase(),
    expr,
    physical: plainColumn(expr),
    description: descriptionOf(part),
    part,
    kindKey: 'type',
  };
}

/** The entity or the dimension of a column; null if it has none. */
export function columnElement(column: Part, key: 'entity' | 'dimension'): ModelElement | null {
  if (!column.has(key)) return null;
  const name = column.needText('name');
  const text = key === 'dimension' ? (column.text('granularity')?.toLowerCase() ?? null) : null;
  const common = {
    expr: name,
    physical: name,
    grain: text === null ? null : { text, part: column, key: 'granularity' },
  };
  if (column.isText(key)) {
    const kind = (column.text(key) ?? '').toLowerCase();
    return { ...common, name, kind, description: null, validity: null, part: column, kindKey: key };
  }
  const part = column.child(key);
  if (part === null) return null;
  return {
    ...common,
    name: part.text('name') ?? name,
    kind: (part.text('type') ?? '').toLowerCase(),
    description: descriptionOf(part),
    validity: part,
    part,
    kindKey: 'type',
  };
}

/** Expression of an entity, dimension or measure; `name` if it states none. */
export function exprOf(part: Part, name: string): string {
  const written = part.scalar('expr');
  return written === null || written === '' ? name : written;
}

/** Column name, if the expression is a single column; otherwise null. */
function plainColumn(text: string): string | null {
  const parsed = attempt(() => nameOf(parseExpression(text)));
  return parsed.ok && parsed.value !== null && parsed.value.length === 1 ? (parsed.value[0] ?? null) : null;
}

/** True if `text` contains a template, which is never evaluated. */
export function isTemplate(text: string): boolean {
  return text.includes('{{') || text.includes('{%') || text.includes('{#');
}

/** The description as text. One that contains a template is reported instead of being evaluated. */
export function descriptionOf(part: Part): string | null {
  const text = part.text('description');
  if (text === null || text.trim() === '') return null;
  if (isTemplate(text)) {
    part.note('description', 'lost', 'a template in a description is not evaluated');
    return null;
  }
  return part.cut('description', text, 'the description');
}
