import type { Counterexample } from '../../policy/proof/index.js';

/** A counterexample for a person to read: what it shows, its row, its callers, and what must hold. */
export function* counterexampleLines({
  part,
  relation,
  row,
  callers,
  conditions,
}: Counterexample): Generator<string> {
  yield `           ${part.says}`;
  const cells = [...row].map(([column, value]) => `${column} = ${value ?? 'NULL'}`);
  yield `           row of ${relation.name}: ${cells.length === 0 ? 'any' : cells.join(', ')}`;
  for (const caller of new Set(part.checks.map((c) => c.caller))) {
    const { roles = [], attributes = new Map() } = callers[caller] ?? {};
    const has = [...attributes].map(
      ([name, value]) => `${name} = ${value === 'any' ? 'any' : `[${value.join(', ')}]`}`,
    );
    yield `           caller with ${roles.join(', ')}${has.length === 0 ? '' : `, ${has.join(', ')}`}`;
  }
  for (const key of conditions) yield `           while ${key}`;
}
