import { createHash } from 'node:crypto';
import {
  type Access,
  compile,
  compileMetrics,
  emit,
  featuresBy,
  type GovernedPlan,
  mayBeRedacted,
  type Position,
  QueryError,
  type Slot,
  valuesOf,
} from 'osl-compiler';
import { toQueryRequest } from '../../../src/surfaces/rest/bodies/query.js';
import { type Case, field } from './cases.js';
import { CALLERS, CATALOG, type Caller } from './catalog.js';
import type { Answer, Engine } from './engine.js';

/** What a case came to: a plan that ran, or a refusal. */
export type Outcome =
  | { readonly kind: 'answered'; readonly plan: GovernedPlan; readonly sql: string; readonly answer: Answer }
  | { readonly kind: 'refused'; readonly error: QueryError };

export function callerNamed(name: string): Caller {
  const found = CALLERS.get(name);
  if (found === undefined) throw new Error(`no caller ${name}`);
  return found;
}

/** A query that is a JSON object is a metrics body. */
function planOf({ query, world, joins, off }: Case, access: Access): GovernedPlan {
  const features = featuresBy((name) => !off.includes(name));
  const catalog = { ...CATALOG, features, joins };
  if (!query.startsWith('{')) return compile(query, catalog, access, { world });
  const { body } = toQueryRequest(JSON.parse(query));
  if (body.kind !== 'metrics') throw new Error(`no metrics body: ${query}`);
  return compileMetrics(body.request, catalog, access);
}

export async function outcomeOf(golden: Case, engine: Engine): Promise<Outcome> {
  const caller = callerNamed(golden.caller);
  try {
    const plan = planOf(golden, caller.access);
    const { sql, slots } = emit(plan);
    const answer = await engine.ask(sql, valuesFor(slots, caller, golden.values));
    return { kind: 'answered', plan, sql, answer };
  } catch (error) {
    if (error instanceof QueryError) return { kind: 'refused', error };
    throw error;
  }
}

export function valuesFor(slots: readonly Slot[], caller: Caller, values: readonly (string | null)[]) {
  return valuesOf<string | null>(slots, {
    text: (value) => value,
    client: (index) => values[index],
    attribute: (subject, name) => caller.attributes[subject]?.get(name) ?? [],
    pad: (pad, domain) => padOf(pad, domain).toString('hex'),
    runtime: () => '[]',
    keys: () => [],
    given: () => '',
  });
}

/** HMAC's pads of a key that the test makes from the domain's name. */
export function padOf(pad: 'inner' | 'outer', domain: string): Buffer {
  const key = Buffer.concat([keyOf(domain), Buffer.alloc(32)]);
  return key.map((byte) => byte ^ (pad === 'inner' ? 0x36 : 0x5c)) as Buffer; // map keeps a Buffer a Buffer
}

export function keyOf(domain: string): Buffer {
  return createHash('sha256').update(`golden ${domain}`).digest();
}

/** The lines below the rule. */
export function describeOutcome(golden: Case, outcome: Outcome): readonly string[] {
  return outcome.kind === 'answered' ? describeAnswer(outcome) : describeRefusal(golden.query, outcome.error);
}

function describeAnswer({ plan, sql, answer }: Extract<Outcome, { kind: 'answered' }>): readonly string[] {
  const { slots } = emit(plan);
  const some = (key: string, items: readonly string[]): readonly string[] =>
    items.length === 0 ? [] : [field(key, items.join(', '))];
  return [
    field('sql', broken(sql)),
    ...some('params', slots.map(describeSlot)),
    field(
      'types',
      plan.outputs
        .map(
          (o) =>
            `${o.name} ${o.type}${mayBeRedacted(o) ? ' redacted' : ''}${o.format === null ? '' : ` as ${o.format.kind}`}`,
        )
        .join(', '),
    ),
    ...some('objects', plan.objects),
    ...some('masked', plan.maskedColumns),
    ...some('partial', plan.partialColumns),
    ...(answer.sqlstate === null ? [] : [field('fails', answer.sqlstate)]),
    ...answer.rows.map((row) => field('row', JSON.stringify(row))),
  ];
}

/** Long SQL on several lines, each clause of the outermost levels on its own. */
export function broken(sql: string): string {
  let depth = 0;
  let line = '';
  const lines: string[] = [];
  for (const word of sql.split(/(?<= )/)) {
    const starts = /^(from|where|group|having|order|limit|join|left|union|intersect|except|select) $/.test(
      word,
    );
    if (starts && depth <= 1 && line.length > 60) {
      lines.push(line.trimEnd());
      line = '';
    }
    line += word;
    depth += (word.match(/\(/g) ?? []).length - (word.match(/\)/g) ?? []).length;
  }
  return [...lines, line].join('\n');
}

function describeSlot(slot: Slot): string {
  switch (slot.kind) {
    case 'literal':
      return `${JSON.stringify(slot.value)} ${slot.type}`;
    case 'client':
      return `$${slot.index + 1} ${slot.type}`;
    case 'attribute':
      return `attribute ${slot.name} of subject ${slot.subject} ${slot.type}`;
    case 'runtime':
      return `rows of runtime relation ${slot.index}`;
    case 'keys':
      return `${slot.column} of runtime relation ${slot.index} ${slot.type}`;
    case 'given':
      return `given ${slot.name} ${slot.type}`;
    case 'pad':
      return `${slot.pad} pad of ${slot.domain}`;
    default: {
      const unknown: never = slot;
      throw new Error(`unexpected slot ${String(unknown)}`);
    }
  }
}

function describeRefusal(query: string, error: QueryError): readonly string[] {
  return [
    field('error', `${error.code} ${error.sqlstate} ${error.message}`),
    ...(error.hint === null ? [] : [field('hint', error.hint)]),
    ...(error.position === null ? [] : [field('at', caret(query, error.position))]),
  ];
}

function caret(query: string, { line, column }: Position): string {
  return `${query.split('\n')[line - 1] ?? ''}\n${' '.repeat(column - 1)}^`;
}
