/** Attacks on minimum groups by differences: each combines answers so that what is left rests on a few persons. */

export interface Person {
  readonly id: number;
  readonly name: string;
  readonly region: string;
  readonly team: string;
  readonly club: string;
  readonly age: number;
  readonly salary: number;
}

/** Fewest persons of a figure. */
export const MINIMUM = 5;

/** Figures by label, as one question is answered: the label is that of the group, or of the column. */
type Figures = ReadonlyMap<string, number>;

/** One question, with the persons on which each of its figures rests. */
export interface AttackQuestion {
  readonly sql: string;
  readonly by: number;
  readonly rests: ReadonlyMap<string, readonly Person[]>;
  figures(rows: readonly (readonly (string | null)[])[]): Figures;
}

export interface Attack {
  readonly kind: string;
  readonly questions: readonly AttackQuestion[];
  readonly victims: readonly Person[];
  /** The sum of the victims' salaries; null if an answer that is needed has no figure. */
  combine(answers: readonly Figures[]): number | null;
}

export class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  below(most: number): number {
    this.#state = (Math.imul(this.#state ^ (this.#state >>> 15), 0x2c1b3c6d) + 0x6d2b79f5) >>> 0;
    const mixed = Math.imul(this.#state ^ (this.#state >>> 12), 0x297a2d39);
    return ((mixed ^ (mixed >>> 15)) >>> 0) % most;
  }

  one<T>(list: readonly T[]): T {
    const chosen = list[this.below(list.length)];
    if (chosen === undefined) throw new Error('nothing to choose from');
    return chosen;
  }

  some<T>(list: readonly T[], count: number): readonly T[] {
    const left = [...list];
    return Array.from({ length: count }, () => left.splice(this.below(left.length), 1)).flat();
  }
}

export function persons(count: number, dice: Dice): readonly Person[] {
  return Array.from({ length: count }, (_, i) => ({
    id: i + 1,
    name: `name${i + 1}`,
    region: `r${dice.below(4)}`,
    team: `t${dice.below(12)}`,
    // Small clubs beside large ones, whose figures are not shown.
    club: `c${Math.floor((dice.below(100) * dice.below(100)) / 400)}`,
    age: 20 + dice.below(45),
    salary: 100_000 + dice.below(9_000_000),
  }));
}

interface Filter {
  readonly sql: string;
  readonly takes: (p: Person) => boolean;
}

const ALL: Filter = { sql: 'true', takes: () => true };

function filterFrom(dice: Dice): Filter {
  const column = dice.one(['region', 'team', 'club', 'age', 'all'] as const);
  if (column === 'all') return ALL;
  if (column === 'age') {
    const from = 20 + dice.below(30);
    const to = from + 5 + dice.below(15);
    return { sql: `age between ${from} and ${to}`, takes: (p) => p.age >= from && p.age <= to };
  }
  const value =
    column === 'region'
      ? `r${dice.below(4)}`
      : column === 'team'
        ? `t${dice.below(12)}`
        : `c${dice.below(4)}`;
  return { sql: `${column} = '${value}'`, takes: (p) => p[column] === value };
}

const without = ({ sql, takes }: Filter, few: readonly Person[], byName: boolean): Filter => ({
  sql: `${sql} and ${
    byName
      ? few.map((p) => `name <> '${p.name}'`).join(' and ')
      : `id not in (${few.map((p) => p.id).join(', ')})`
  }`,
  takes: (p) => takes(p) && !few.includes(p),
});

const onlyThese = (some: readonly Person[]): Filter => ({
  sql: `id in (${some
    .map((p) => p.id)
    .sort((a, b) => a - b)
    .join(', ')})`,
  takes: (p) => some.includes(p),
});

const FROM = 'from osl.entities.person';

/** Makes the attacks on one table. */
export class Attacker {
  readonly #all: readonly Person[];
  readonly #dice: Dice;

  constructor(all: readonly Person[], dice: Dice) {
    this.#all = all;
    this.#dice = dice;
  }

  /** @param askers the number of subjects who share their answers */
  next(askers: number): Attack {
    const kind = this.#dice.one([
      () => this.#exclusion(),
      () => this.#range(),
      () => this.#complement(),
      () => this.#rollup(),
      () => this.#filterClause(),
      () => this.#means(),
      () => this.#three(),
    ]);
    for (;;) {
      const attack = kind();
      const { length } = attack.victims;
      if (length === 0 || length >= MINIMUM) continue;
      const first = this.#dice.below(askers);
      const questions = attack.questions.map((q, i) => ({ ...q, by: (first + i) % askers }));
      return { ...attack, questions };
    }
  }

  #sum(filter: Filter): AttackQuestion {
    return {
      sql: `select sum(salary) ${FROM} where ${filter.sql}`,
      by: 0,
      rests: new Map([['', this.#all.filter(filter.takes)]]),
      figures: (rows) => labelled([['', rows[0]?.[0]]]),
    };
  }

  #groups(filter: Filter, column: 'team' | 'club', rollup: boolean): AttackQuestion {
    const inside = this.#all.filter(filter.takes);
    const rests = new Map<string, readonly Person[]>(rollup ? [['', inside]] : []);
    for (const value of new Set(inside.map((p) => p[column])))
      rests.set(
        value,
        inside.filter((p) => p[column] === value),
      );
    return {
      sql: `select ${column}, sum(salary) ${FROM} where ${filter.sql} group by ${rollup ? `rollup(${column})` : column}`,
      by: 0,
      rests,
      figures: (rows) => labelled(rows.map((row) => [row[0] ?? '', row[1]])),
    };
  }

  #difference(kind: string, whole: Filter, part: Filter): Attack {
    const [a, b] = [this.#sum(whole), this.#sum(part)];
    const isReversed = this.#dice.below(2) === 0;
    const victims = this.#all.filter((p) => whole.takes(p) && !part.takes(p));
    return {
      kind,
      questions: isReversed ? [b, a] : [a, b],
      victims,
      combine: (answers) => {
        const [larger, smaller] = isReversed ? [answers[1], answers[0]] : answers;
        return combined([larger?.get(''), 1], [smaller?.get(''), -1]);
      },
    };
  }

  #exclusion(): Attack {
    const dice = this.#dice;
    const filter = filterFrom(dice);
    const few = dice.some(this.#all.filter(filter.takes), 1 + dice.below(MINIMUM - 1));
    return this.#difference('exclusion', filter, without(filter, few, dice.below(2) === 0));
  }

  #range(): Attack {
    const from = 20 + this.#dice.below(30);
    const to = from + 8 + this.#dice.below(10);
    const more = this.#dice.one([`team = 't${this.#dice.below(12)}'`, `region = 'r${this.#dice.below(4)}'`]);
    const [column, value] = more.replaceAll("'", '').split(' = ');
    const is = (p: Person): boolean => (column === 'team' ? p.team : p.region) === value;
    const range = (first: number): Filter => ({
      sql: `${more} and age between ${first} and ${to}`,
      takes: (p) => is(p) && p.age >= first && p.age <= to,
    });
    return this.#difference('range', range(from), range(from + 1));
  }

  /** A total without all groups that are shown: what is left are the groups that are not. */
  #complement(): Attack {
    const filter = filterFrom(this.#dice);
    const groups = this.#groups(filter, this.#dice.one(['team', 'club']), false);
    const hidden = [...groups.rests.values()].filter((g) => g.length < MINIMUM).flat();
    return {
      kind: 'complement',
      questions: [this.#sum(filter), groups],
      victims: hidden,
      combine: ([total, shown]) => totalWithout(total?.get(''), [...(shown?.values() ?? [])]),
    };
  }

  #rollup(): Attack {
    const groups = this.#groups(filterFrom(this.#dice), this.#dice.one(['team', 'club']), true);
    const hidden = [...groups.rests].filter(([label, g]) => label !== '' && g.length < MINIMUM);
    return {
      kind: 'rollup',
      questions: [groups],
      victims: hidden.flatMap(([, g]) => g),
      combine: ([figures]) =>
        totalWithout(
          figures?.get(''),
          [...(figures ?? [])].flatMap(([label, value]) => (label === '' ? [] : [value])),
        ),
    };
  }

  #filterClause(): Attack {
    const filter = filterFrom(this.#dice);
    const inside = this.#all.filter(filter.takes);
    const victims = inside.length === 0 ? [] : [this.#dice.one(inside)];
    const rest = without(ALL, victims, true);
    const question: AttackQuestion = {
      sql: `select sum(salary), sum(salary) filter (where ${rest.sql.replace('true and ', '')}) ${FROM} where ${filter.sql}`,
      by: 0,
      rests: new Map([
        ['all', inside],
        ['rest', inside.filter(rest.takes)],
      ]),
      figures: (rows) =>
        labelled([
          ['all', rows[0]?.[0]],
          ['rest', rows[0]?.[1]],
        ]),
    };
    return {
      kind: 'filter clause',
      questions: victims.length === 0 ? [] : [question],
      victims,
      combine: ([figures]) => combined([figures?.get('all'), 1], [figures?.get('rest'), -1]),
    };
  }

  /** Means and counts, which give sums. */
  #means(): Attack {
    const attack = this.#exclusion();
    const questions = attack.questions.map((q) => ({
      ...q,
      sql: q.sql.replace('sum(salary)', 'avg(salary), count(salary)'),
      figures: (rows: readonly (readonly (string | null)[])[]): Figures => {
        const [mean, count] = rows[0] ?? [];
        if (mean == null || count == null) return new Map();
        return new Map([['', Math.round(Number(mean) * Number(count))]]);
      },
    }));
    return { ...attack, kind: 'means', questions };
  }

  /** Three sets, each two of which differ in many persons: (S + v) + (T + v) − (S + T) is v twice. */
  #three(): Attack {
    const [victim, ...others] = this.#dice.some(this.#all, 1 + 4 * MINIMUM);
    if (victim === undefined) throw new Error('too few persons');
    const [s, r] = [others.slice(0, 2 * MINIMUM), others.slice(2 * MINIMUM)];
    const of = (some: readonly Person[]): AttackQuestion => this.#sum(onlyThese(some));
    return {
      kind: 'three answers',
      questions: [of([...s, victim]), of([...r, victim]), of([...s, ...r])],
      victims: [victim],
      combine: ([a, b, c]) => {
        const twice = combined([a?.get(''), 1], [b?.get(''), 1], [c?.get(''), -1]);
        return twice === null ? null : twice / 2;
      },
    };
  }
}

function labelled(pairs: readonly (readonly [string, string | null | undefined])[]): Figures {
  return new Map(pairs.flatMap(([label, value]) => (value == null ? [] : [[label, Number(value)] as const])));
}

function combined(...parts: readonly (readonly [number | undefined, number])[]): number | null {
  return parts.reduce<number | null>(
    (sum, [value, factor]) => (sum === null || value === undefined ? null : sum + factor * value),
    0,
  );
}

function totalWithout(total: number | undefined, parts: readonly number[]): number | null {
  return total === undefined ? null : parts.reduce((left, part) => left - part, total);
}

/** Persons on whom a difference of two answered figures rests, if they are too few; null if there are none. */
export function isolatedBy(figures: readonly (readonly Person[])[]): readonly Person[] | null {
  for (const [i, a] of figures.entries())
    for (const b of figures.slice(i + 1)) {
      const [inA, inB] = [new Set(a), new Set(b)];
      const differing = [...a.filter((p) => !inB.has(p)), ...b.filter((p) => !inA.has(p))];
      if (differing.length > 0 && differing.length < MINIMUM) return differing;
    }
  return null;
}
