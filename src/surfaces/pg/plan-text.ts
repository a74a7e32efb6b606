import type { PlanExplanation } from 'osl-compiler';

/** A governed plan as EXPLAIN tells it. */
export interface TellablePlan {
  readonly plan: PlanExplanation;
  /** Full names of what it reads, and ids of the grants that it reads them by. */
  readonly objects: readonly string[];
  readonly grants: readonly string[];
}

/** One line for each row of `FORMAT TEXT`: the steps from the outside in, indented as Postgres does. */
export function planLines({ plan, objects, grants }: TellablePlan): readonly string[] {
  return [
    ...stepLines(plan, 0),
    ...(objects.length === 0 ? [] : [`Objects: ${objects.join(', ')}`]),
    ...(grants.length === 0 ? [] : [`Grants: ${grants.join(', ')}`]),
  ];
}

/** The document of `FORMAT JSON`, with the members that drawers of plans look for: `Plan`, `Node Type`, `Plans`. */
export function planDocument({ plan, objects, grants }: TellablePlan): string {
  return JSON.stringify([{ Plan: nodeOf(plan), Objects: objects, Grants: grants }], null, 2);
}

function stepLines({ step, detail, inputs }: PlanExplanation, depth: number): readonly string[] {
  const { object, ...others } = detail;
  const facts = Object.entries(others).filter(([, value]) => isSaid(value));
  const lists = facts.filter(([, value]) => Array.isArray(value));
  const marks = facts.filter(([, value]) => !Array.isArray(value));
  const indent = depth === 0 ? '' : `${'      '.repeat(depth - 1)}  ->  `;
  const below = '      '.repeat(depth);
  const on = object === undefined ? '' : ` on ${String(object)}`;
  const said = marks.length === 0 ? '' : `  (${marks.map(markText).join(', ')})`;
  return [
    `${indent}${capital(step)}${on}${said}`,
    ...lists.map(([name, value]) => `${below}  ${title(name)}: ${listText(value)}`),
    ...inputs.flatMap((input) => stepLines(input, depth + 1)),
  ];
}

function nodeOf({ step, detail, inputs }: PlanExplanation): Readonly<Record<string, unknown>> {
  const { object, ...others } = detail;
  const facts = Object.entries(others).map(([name, value]) => [title(name), value]);
  return {
    'Node Type': capital(step),
    ...(object === undefined ? {} : { 'Relation Name': object }),
    ...Object.fromEntries(facts),
    ...(inputs.length === 0 ? {} : { Plans: inputs.map(nodeOf) }),
  };
}

function isSaid(value: unknown): boolean {
  const empty = Array.isArray(value) ? value.length === 0 : value === 0 || value === 'none';
  return value !== null && value !== false && !empty;
}

function markText([name, value]: readonly [string, unknown]): string {
  const words = name.replaceAll('_', ' ');
  return value === true ? words : `${words}: ${typeof value === 'object' ? JSON.stringify(value) : value}`;
}

function listText(value: unknown): string {
  return Array.isArray(value) ? value.map(itemText).join(', ') : String(value);
}

/** `email (masked)` for a column that is masked, at least for some rows. */
function itemText(item: unknown): string {
  if (typeof item !== 'object' || item === null) return String(item);
  const { name, masked } = item as { readonly name?: unknown; readonly masked?: unknown };
  if (name === undefined) return JSON.stringify(item);
  const how = masked === 'all' || masked === true ? 'masked' : `masked: ${String(masked)}`;
  return isSaid(masked) && masked !== undefined ? `${String(name)} (${how})` : String(name);
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function title(name: string): string {
  return name.split('_').map(capital).join(' ');
}
