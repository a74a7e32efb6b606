import type { GrantConditions, GrantDocument } from './document.js';

/** Every condition that a grant may have: one that is missing here does not compile. */
const EVERY: Readonly<Record<keyof GrantConditions, true>> = Object.freeze({
  starts: true,
  ends: true,
  when: true,
  for: true,
  break_glass: true,
  approval: true,
});

/** The conditions of a grant as the policy file has them; null if it is unconditional. */
export function conditionsIn(grant: GrantDocument): GrantConditions | null {
  const given = Object.keys(EVERY).flatMap((key) => {
    const value = grant[key as keyof GrantConditions]; // cast: a key of EVERY
    return value === undefined ? [] : [[key, value] as const];
  });
  return given.length === 0 ? null : Object.fromEntries(given);
}

/** The grant as an unconditional one. */
export function withoutConditions(grant: GrantDocument): Omit<GrantDocument, keyof GrantConditions> {
  const others = Object.entries(grant).filter(([key]) => !Object.hasOwn(EVERY, key));
  return Object.fromEntries(others) as Omit<GrantDocument, keyof GrantConditions>; // cast: only conditions are left out
}
