import { type AnsweredSet, distinctSorted, OverlapHistory, type Verdict } from './history.js';

const DAY_MS = 86_400_000;

/** The rows behind figures of one group of an answer, as they come from the database. */
export interface ReadSet {
  /** Hashes of rows, each followed by that of its unit if `hasUnit`; in any order, and possibly repeated. */
  readonly hashes: readonly string[];
  /** Hexadecimal digits of each hash. */
  readonly digits: number;
  readonly hasUnit: boolean;
  /** The fewest units with which the group is shown. */
  readonly minimum: number;
  /** As in `Population`. */
  readonly figures: readonly string[];
}

/** An answer that is to be added to histories. */
export interface AnswerToAdmit {
  /** Keys of the histories, each with the days that it lasts from its first answer. */
  readonly keys: readonly (readonly [key: string, days: number])[];
  /** The stored histories, in the order of `keys`; null where there is none. */
  readonly stored: readonly (Uint8Array | null)[];
  /** Identifies the question; null if it is never the same. */
  readonly digest: string | null;
  readonly sets: readonly ReadSet[];
  readonly minimum: number;
}

export interface OverlapDecision {
  readonly verdict: Verdict;
  /** End of the history that decided, in ms since the epoch. */
  readonly endsAt: number;
}

export interface OverlapUpdate<T> {
  readonly result: T;
  readonly changed: readonly ChangedHistory[];
}

export interface ChangedHistory {
  readonly key: string;
  readonly bytes: Buffer;
  /** In ms since the epoch. */
  readonly endsAt: number;
}

/** Returns true if all of the stored histories contain the question. */
export function haveAnswered(stored: readonly (Uint8Array | null)[], digest: string): boolean {
  return stored.every((bytes) => bytes !== null && historyOf(bytes, 0).hasAnswered(digest));
}

/** Adds an answer to all histories, or to none. A refusal is counted. */
export function decide({
  keys,
  stored,
  digest,
  sets,
  minimum,
}: AnswerToAdmit): OverlapUpdate<OverlapDecision> {
  const shown = sets.flatMap((set) => {
    const answered = answeredSet(set);
    return unitsIn(answered) < set.minimum ? [] : [answered];
  });
  const changed: ChangedHistory[] = [];
  let endsAt = 0;
  for (const [i, [key, days]] of keys.entries()) {
    const bytes = stored[i] ?? null;
    const history = historyOf(bytes, days);
    endsAt = history.endsAt;
    const verdict = history.admit(digest, shown, minimum);
    if (verdict === 'refused') {
      const before = historyOf(bytes, days);
      before.refuse();
      return {
        result: { verdict, endsAt },
        changed: [{ key, bytes: before.encode(), endsAt: before.endsAt }],
      };
    }
    if (verdict === 'spent') return { result: { verdict, endsAt }, changed: [] };
    if (verdict === 'admitted') changed.push({ key, bytes: history.encode(), endsAt });
  }
  return { result: { verdict: 'admitted', endsAt }, changed };
}

function answeredSet({ hashes: texts, digits, hasUnit, figures }: ReadSet): AnsweredSet {
  const hashes = new Float64Array(texts.reduce((n, text) => n + text.length, 0) / digits);
  let end = 0;
  for (const text of texts)
    for (let at = 0; at < text.length; at += digits)
      hashes[end++] = Number.parseInt(text.slice(at, at + digits), 16);
  if (!hasUnit) return { members: distinctSorted(hashes), units: null, figures };
  const unitOf = new Map<number, number>();
  for (let at = 0; at < hashes.length; at += 2) unitOf.set(hashes[at] ?? 0, hashes[at + 1] ?? 0);
  const members = distinctSorted(Float64Array.from(unitOf.keys()));
  return { members, units: members.map((m) => unitOf.get(m) ?? 0), figures };
}

function unitsIn({ members, units }: AnsweredSet): number {
  return units === null ? members.length : new Set(units).size;
}

function historyOf(bytes: Uint8Array | null, days: number): OverlapHistory {
  const known = bytes === null ? null : OverlapHistory.decode(Buffer.from(bytes));
  return known !== null && known.endsAt > Date.now() ? known : new OverlapHistory(Date.now() + days * DAY_MS);
}
