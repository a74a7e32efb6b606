import type { Joins, RequestedWorld } from 'osl-compiler';

/** One golden case: what is asked, and, below the rule, what came of it. */
export interface Case {
  readonly name: string;
  readonly caller: string;
  readonly query: string;
  /** What its names mean; OSL-SQL where the case says nothing. */
  readonly world: RequestedWorld;
  /** What entities may be joined on; declared keys where the case says nothing. */
  readonly joins: Joins;
  /** What the tenant has switched off, by the manifest's names. */
  readonly off: readonly string[];
  /** Values of `$1 …`, where the query has any. */
  readonly values: readonly (string | null)[];
}

const WORLDS: readonly RequestedWorld[] = ['semantic', 'physical', 'either'];

const WIDTH = 8;
const RULE = '----';

/** `key` and its value, further lines of it indented. */
export function field(key: string, value: string): string {
  return `${key.padEnd(WIDTH)}${value.replaceAll('\n', `\n${' '.repeat(WIDTH)}`)}`;
}

/** The cases of a file; blank lines separate them, and what stands below a rule is left out. */
export function parseCases(text: string): readonly Case[] {
  return text
    .split(/\n{2,}/)
    .map((block) => block.trim())
    .filter((block) => block !== '')
    .map((block) => parseCase(block.split(`\n${RULE}`)[0] ?? ''));
}

function parseCase(block: string): Case {
  const fields = new Map<string, string>();
  let key = '';
  for (const line of block.split('\n')) {
    const start = line.slice(0, WIDTH).trim();
    const rest = line.slice(WIDTH);
    if (start === '') fields.set(key, `${fields.get(key) ?? ''}\n${rest}`);
    else fields.set((key = start), rest);
  }
  const wanted = (name: string): string => {
    const value = fields.get(name);
    if (value === undefined) throw new Error(`a golden case lacks its ${name}:\n${block}`);
    return value;
  };
  const world = WORLDS.find((w) => w === (fields.get('world') ?? 'semantic'));
  if (world === undefined) throw new Error(`a golden case is of no world:\n${block}`);
  const values: unknown = JSON.parse(fields.get('values') ?? '[]');
  return {
    name: wanted('case'),
    caller: wanted('caller'),
    query: wanted('query'),
    world,
    joins: fields.get('joins') === 'any' ? 'any' : 'declared',
    off: (fields.get('off') ?? '').split(' ').filter((name) => name !== ''),
    values: Array.isArray(values) ? values.map((v) => (v === null ? null : String(v))) : [],
  };
}

/** The case as its file has it, with `result` below the rule. */
export function writeCase(golden: Case, result: readonly string[]): string {
  const values = golden.values.length === 0 ? [] : [field('values', JSON.stringify(golden.values))];
  const world = golden.world === 'semantic' ? [] : [field('world', golden.world)];
  const joins = golden.joins === 'declared' ? [] : [field('joins', golden.joins)];
  const off = golden.off.length === 0 ? [] : [field('off', golden.off.join(' '))];
  const asked = [
    field('case', golden.name),
    field('caller', golden.caller),
    ...world,
    ...joins,
    ...off,
    field('query', golden.query),
    ...values,
  ];
  return [...asked, RULE, ...result].join('\n');
}
