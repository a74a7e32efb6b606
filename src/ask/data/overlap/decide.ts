import { createHash } from 'node:crypto';
import { isolates, type MemberClass } from './isolation.js';

const DAY_MS = 86_400_000;

/** The rows behind the figures of one group of an answer, as read from the database. */
export interface ReadSet {
  /** Hashes of rows, concatenated in any order, maybe repeated; after each, its privacy unit's hash if `hasUnit`. */
  readonly hashes: readonly string[];
  /** Length of each hash, in hexadecimal digits. */
  readonly digits: number;
  readonly hasUnit: boolean;
  /** Minimum number of units (rows, unless `hasUnit`) for the group to be shown. */
  readonly minimum: number;
  /** The figures computed from these rows, as in `Population.sets`. */
  readonly figures: readonly string[];
}

/** An answer to compare with histories and add to them. */
export interface AnswerToAdmit {
  /** Keys of the histories, each with its lifetime in days from its first answer. */
  readonly keys: readonly (readonly [key: string, days: number])[];
  /** The stored histories, in the order of `keys`; null for a key without a history. */
  readonly stored: readonly (Uint8Array | null)[];
  /** Identifies the question; null if its answer depends on the time, so that it never counts as repeated. */
  readonly digest: string | null;
  readonly sets: readonly ReadSet[];
  readonly minimum: number;
}

export interface OverlapDecision {
  readonly verdict: AdmissionVerdict;
  /** Expiry of the last history examined, in ms since the epoch. If a history refused the answer, it is this one. */
  readonly endsAt: number;
}

export interface OverlapUpdate<T> {
  readonly result: T;
  readonly changed: readonly ChangedHistory[];
}

export interface ChangedHistory {
  readonly key: string;
  readonly bytes: Buffer;
  /** Expiry of the history, in ms since the epoch. */
  readonly endsAt: number;
}

/** Returns the expiry of a stored history, in ms since the epoch; null if its header cannot be read. */
export function endOfHistory(bytes: Buffer): number | null {
  try {
    const { endsAt } = JSON.parse(bytes.toString('utf8', 4, 4 + bytes.readUInt32LE(0))) as HistoryHeader;
    return endsAt;
  } catch {
    return null;
  }
}

/** Returns true if all stored histories contain the question. */
export function haveAnswered(stored: readonly (Uint8Array | null)[], digest: string): boolean {
  return stored.every((bytes) => bytes !== null && historyOf(bytes, 0).hasAnswered(digest));
}

/** Returns the changes to histories: all get the answer, or none; a refusal is counted in the one that caused it. */
export function decide({
  keys,
  stored,
  digest,
  sets,
  minimum,
}: AnswerToAdmit): OverlapUpdate<OverlapDecision> {
  const shown = sets.flatMap((set) => {
    const answer = answeredSet(set);
    return unitsIn(answer) < set.minimum ? [] : [answer];
  });
  const changed: ChangedHistory[] = [];
  let endsAt = 0;
  for (const [i, [key, days]] of keys.entries()) {
    const bytes = stored[i] ?? null;
    const history = historyOf(bytes, days);
    endsAt = history.endsAt;
    const verdict = history.admit(digest, shown, minimum);
    if (verdict === 'refused') {
      const unchanged = historyOf(bytes, days);
      unchanged.refuse();
      return {
        result: { verdict, endsAt },
        changed: [{ key, bytes: unchanged.encode(), endsAt: unchanged.endsAt }],
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
  const decoded = bytes === null ? null : OverlapHistory.decode(Buffer.from(bytes));
  return decoded !== null && decoded.endsAt > Date.now()
    ? decoded
    : new OverlapHistory(Date.now() + days * DAY_MS);
}

/** Limits of one history. A question that exceeds one of them is refused until the history expires. */
const MAX_MEMBERS = 2_097_152;
const MAX_SETS = 1_024;
const MAX_CLASSES = 8_192;
const MAX_QUESTIONS = 4_096;
/** Kept small, since each refusal reveals that a small difference exists. */
const MAX_REFUSALS = 32;

/** The rows from which some figures of an answer are computed. */
interface AnsweredSet {
  /** Hashes of the rows, ascending and distinct. */
  readonly members: Float64Array;
  /** The hash of each row's privacy unit; null if each row is a unit. */
  readonly units: Float64Array | null;
  /** The figures computed from these rows, as in `Population.sets`. */
  readonly figures: readonly string[];
}

type AdmissionVerdict = 'repeated' | 'admitted' | 'refused' | 'spent';

interface HistoryHeader {
  readonly endsAt: number;
  readonly refusals: number;
  readonly questions: readonly string[];
  /** The figures computed from each set. */
  readonly sets: readonly (readonly string[])[];
  /** For each class of rows, the sets that contain it. The rows of class 0 are in no set. */
  readonly classes: readonly (readonly number[])[];
  readonly members: number;
  readonly hasUnits: boolean;
}

/**
 * The answers that one subject, or one group of subjects, has received about the rows of one table. Rows that are in
 * the same sets form a class, so that the size of a history depends on the number of rows, not on the number of
 * answers.
 */
class OverlapHistory {
  readonly endsAt: number;
  #refusals = 0;
  readonly #questions = new Set<string>();
  #sets: (readonly string[])[] = [];
  #classes: (readonly number[])[] = [[]];
  #members: Float64Array = new Float64Array(0);
  #units: Float64Array | null = null;
  #classOf: Uint32Array = new Uint32Array(0);

  /** @param endsAt expiry of the history, in ms since the epoch */
  constructor(endsAt: number) {
    this.endsAt = endsAt;
  }

  /** Restores a history from the result of `encode`. @throws Error if `bytes` is truncated or has changed */
  static decode(bytes: Buffer): OverlapHistory {
    const length = bytes.readUInt32LE(0);
    // The cast is safe, since `encode` wrote it; a truncated file fails below.
    const header = JSON.parse(bytes.toString('utf8', 4, 4 + length)) as HistoryHeader;
    const history = new OverlapHistory(header.endsAt);
    history.#refusals = header.refusals;
    for (const question of header.questions) history.#questions.add(question);
    history.#sets = [...header.sets];
    history.#classes = [...header.classes];
    let at = 4 + length;
    const next = (size: number): ArrayBuffer => {
      const part = new Uint8Array(size);
      if (bytes.copy(part, 0, at, at + size) !== size) throw new Error('a history of answers is cut');
      at += size;
      return part.buffer;
    };
    history.#members = new Float64Array(next(8 * header.members));
    history.#classOf = new Uint32Array(next(4 * header.members));
    history.#units = header.hasUnits ? new Float64Array(next(8 * header.members)) : null;
    // Histories of older versions end here.
    if (at < bytes.length && !checksumOf([bytes.subarray(0, at)]).equals(bytes.subarray(at)))
      throw new Error('a history of answers has changed');
    return history;
  }

  encode(): Buffer {
    const header: HistoryHeader = {
      endsAt: this.endsAt,
      refusals: this.#refusals,
      questions: [...this.#questions],
      sets: this.#sets,
      classes: this.#classes,
      members: this.#members.length,
      hasUnits: this.#units !== null,
    };
    const text = Buffer.from(JSON.stringify(header), 'utf8');
    const length = Buffer.alloc(4);
    length.writeUInt32LE(text.length);
    const parts = [this.#members, this.#classOf, ...(this.#units === null ? [] : [this.#units])];
    const arrays = parts.map((a) => new Uint8Array(a.buffer, a.byteOffset, a.byteLength));
    const encoded = [length, text, ...arrays];
    return Buffer.concat([...encoded, checksumOf(encoded)]);
  }

  hasAnswered(question: string): boolean {
    return this.#questions.has(question);
  }

  /**
   * Compares an answer with the history and adds it. A repeated question is admitted without comparison. If the verdict
   * is `refused` or `spent`, discard this object: the answer may have been added in part.
   *
   * @param question null if its answer depends on the time, so that it never counts as repeated
   * @param minimum the fewest units from which a figure may be computed
   */
  admit(question: string | null, sets: readonly AnsweredSet[], minimum: number): AdmissionVerdict {
    if (question !== null && this.hasAnswered(question)) return 'repeated';
    if (this.#refusals >= MAX_REFUSALS || this.#questions.size >= MAX_QUESTIONS) return 'spent';
    this.#addMembers(sets);
    if (this.#members.length > MAX_MEMBERS) return 'spent';
    const changed = new Set<number>();
    const sizes = this.#sizes();
    for (const set of sets) {
      this.#addSet(set, sizes, changed);
      if (this.#sets.length > MAX_SETS || this.#classes.length > MAX_CLASSES) return 'spent';
    }
    const isolated = isolates(this.#memberClasses(minimum), this.#sets, changed, minimum);
    if (isolated === 'unknown') return 'spent';
    if (isolated) return 'refused';
    if (question !== null) this.#questions.add(question);
    return 'admitted';
  }

  /** Counts a refusal toward `MAX_REFUSALS`. */
  refuse(): void {
    this.#refusals += 1;
  }

  /** Adds the rows of `sets` that the history does not contain yet, as rows of class 0. */
  #addMembers(sets: readonly AnsweredSet[]): void {
    const before = this.#members;
    const missing: Float64Array[] = [];
    for (const { members } of sets) {
      const positions = positionsIn(before, members);
      missing.push(members.filter((value, i) => before[positions[i] ?? 0] !== value));
    }
    if (missing.some((part) => part.length > 0)) this.#insert(missing);
    for (const { members, units: memberUnits } of sets) {
      if (memberUnits === null) continue;
      const units = this.#units ?? this.#members.slice();
      const positions = positionsIn(this.#members, members);
      for (let i = 0; i < positions.length; i++) units[positions[i] ?? 0] = memberUnits[i] ?? 0;
      this.#units = units;
    }
  }

  #insert(added: readonly Float64Array[]): void {
    const before = this.#members;
    const all = new Float64Array(added.reduce((n, part) => n + part.length, before.length));
    let end = 0;
    for (const part of [before, ...added]) {
      all.set(part, end);
      end += part.length;
    }
    const members = distinctSorted(all);
    const positions = positionsIn(members, before);
    const classOf = new Uint32Array(members.length);
    const units = this.#units === null ? null : members.slice();
    for (let i = 0; i < positions.length; i++) {
      const position = positions[i] ?? 0;
      classOf[position] = this.#classOf[i] ?? 0;
      if (units !== null) units[position] = this.#units?.[i] ?? 0;
    }
    this.#members = members;
    this.#classOf = classOf;
    this.#units = units;
  }

  /** Adds a set, splitting classes of which it contains only a part. A set that is already known only gains figures. */
  #addSet({ members, figures }: AnsweredSet, sizes: number[], changed: Set<number>): void {
    const positions = positionsIn(this.#members, members);
    const countByClass = new Map<number, number>();
    for (const position of positions) {
      const from = this.#classOf[position] ?? 0;
      countByClass.set(from, (countByClass.get(from) ?? 0) + 1);
    }
    const isWhole = [...countByClass].every(([from, count]) => from !== 0 && count === sizes[from]);
    const existing = isWhole ? this.#setOf(new Set(countByClass.keys())) : null;
    if (existing !== null) {
      const existingFigures = this.#sets[existing] ?? [];
      const more = figures.filter((f) => !existingFigures.includes(f));
      if (more.length > 0) changed.add(existing);
      this.#sets[existing] = [...existingFigures, ...more];
      return;
    }
    const index = this.#sets.push(figures) - 1;
    changed.add(index);
    const moved = new Map<number, number>();
    for (const [from, count] of countByClass) {
      const sets = [...(this.#classes[from] ?? []), index];
      if (from !== 0 && count === sizes[from]) {
        this.#classes[from] = sets;
        continue;
      }
      moved.set(from, this.#classes.push(sets) - 1);
      sizes[from] = (sizes[from] ?? 0) - count;
      sizes.push(count);
    }
    for (const position of positions) {
      const from = this.#classOf[position] ?? 0;
      this.#classOf[position] = moved.get(from) ?? from;
    }
  }

  #sizes(): number[] {
    const sizes = this.#classes.map(() => 0);
    for (const classIndex of this.#classOf) sizes[classIndex] = (sizes[classIndex] ?? 0) + 1;
    return sizes;
  }

  /** Returns the index of the set that consists of exactly these classes; null if there is no such set. */
  #setOf(classes: ReadonlySet<number>): number | null {
    const [first] = classes;
    for (const set of first === undefined ? [] : (this.#classes[first] ?? [])) {
      const isSame = this.#classes.every((sets, i) => sets.includes(set) === classes.has(i));
      if (isSame) return set;
    }
    return null;
  }

  /** Returns all classes except class 0. `units` is null for a class with at least `minimum` units. */
  #memberClasses(minimum: number): readonly MemberClass[] {
    const units: (Set<number> | null)[] = this.#classes.map(() => new Set<number>());
    const unitHashes = this.#units ?? this.#members;
    for (let position = 0; position < unitHashes.length; position++) {
      const classIndex = this.#classOf[position] ?? 0;
      const classUnits = units[classIndex];
      if (classUnits == null) continue;
      classUnits.add(unitHashes[position] ?? 0);
      if (classUnits.size >= minimum) units[classIndex] = null;
    }
    return this.#classes.map((sets, i) => ({ sets, units: units[i] ?? null })).slice(1);
  }
}

/** SHA-256 of `parts` together, for finding damage. */
function checksumOf(parts: readonly Uint8Array[]): Buffer {
  const sum = createHash('sha256');
  for (const part of parts) sum.update(part);
  return sum.digest();
}

/** Sorts `values` in place and returns them without duplicates. */
function distinctSorted(values: Float64Array): Float64Array {
  values.sort();
  let end = 0;
  for (const value of values) if (end === 0 || values[end - 1] !== value) values[end++] = value;
  return values.slice(0, end);
}

/** Returns the index in `sorted` of each of the ascending `values`, or the index to insert it at if it is missing. */
function positionsIn(sorted: Float64Array, values: Float64Array): Uint32Array {
  const positions = new Uint32Array(values.length);
  let from = 0;
  for (let i = 0; i < values.length; i++) {
    const value = values[i] ?? 0;
    let low = from;
    let high = sorted.length;
    // Exponential search, since both lists ascend and the next value is likely to be near.
    for (let step = 1; low + step < high && (sorted[low + step] ?? 0) < value; step *= 2) low += step;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((sorted[middle] ?? 0) < value) low = middle + 1;
      else high = middle;
    }
    positions[i] = low;
    from = low;
  }
  return positions;
}
