import type { SystemEngine } from '../../src/engine/index.js';
import type { AdoptionCandidate } from '../../src/model/discovery/index.js';
import { usage } from '../exit.js';
import type { Progress } from '../progress.js';
import { countKey, declaredKey, type FoundKey, tableOf } from '../proposal/index.js';
import type { InitFlags } from './flags.js';

/** Time limit for counting all tables. */
const BUDGET_MS = 30_000;

export interface KeyedCandidates {
  readonly candidates: readonly AdoptionCandidate[];
  readonly counted: ReadonlySet<string>;
  readonly keyless: readonly KeylessTable[];
}

export interface KeylessTable {
  readonly table: string;
  readonly reason: string;
}

/** Determines the key of every candidate: named by a flag, declared, or found by counting. */
export async function withKeys(
  candidates: readonly AdoptionCandidate[],
  system: SystemEngine,
  flags: InitFlags,
  progress: Progress,
): Promise<KeyedCandidates> {
  const named = namedKeys(candidates, flags);
  const deadline = Date.now() + BUDGET_MS;
  const keyed: AdoptionCandidate[] = [];
  const counted = new Set<string>();
  const keyless: KeylessTable[] = [];
  const unknown = candidates.filter((c) => !named.has(tableOf(c)) && declaredKey(c) === null);
  let done = 0;
  for (const candidate of candidates) {
    const table = tableOf(candidate);
    const known = named.get(table) ?? declaredKey(candidate);
    if (known !== null && known !== undefined) {
      keyed.push({ ...candidate, key: known });
      continue;
    }
    progress.step('looking for keys', ++done, unknown.length);
    const found: FoundKey =
      Date.now() > deadline ? { kind: 'none', reason: 'it has no key' } : await countKey(system, candidate);
    if (found.kind === 'none') {
      keyed.push({ ...candidate, key: [] });
      keyless.push({ table, reason: `${found.reason} (--key ${candidate.table}=column)` });
    } else {
      keyed.push({ ...candidate, key: found.columns });
      counted.add(table);
    }
  }
  progress.end();
  return { candidates: keyed, counted, keyless };
}

function namedKeys(
  candidates: readonly AdoptionCandidate[],
  flags: InitFlags,
): ReadonlyMap<string, readonly string[]> {
  return new Map(
    flags.key.map((text) => {
      const [, name, list] = /^([^=]+)=(.+)$/su.exec(text) ?? [];
      if (name === undefined || list === undefined)
        throw usage('--key takes table=column, or table=column+column');
      const tables = candidates.filter((c) => c.table === name || tableOf(c) === name);
      const [table] = tables;
      if (table === undefined) throw usage(`--key: no table is called \`${name}\``);
      if (tables.length > 1) throw usage(`--key: \`${name}\` could be ${tables.map(tableOf).join(', ')}`);
      const columns = list.split('+');
      const missing = columns.find((c) => !table.columns.some((column) => column.name === c));
      if (missing !== undefined) throw usage(`--key: \`${name}\` has no column \`${missing}\``);
      return [tableOf(table), columns] as const;
    }),
  );
}
