import type { TypeName } from 'osl-compiler';
import type { Dice } from './dice.js';
import { Expressions, type Term } from './expressions.js';
import { visibleColumns, type World } from './world.js';

/**
 * Random questions about a world, as text with marks: `‹a.k›` is a sealed column where it is joined on, `‹*a›` is
 * `a.*`. The caller's text and the copy's text differ in the marks only.
 */
export interface Question {
  readonly text: string;
}

/** A FROM item: its columns, and whether the caller can tell its rows apart by a key that is clear. */
export interface Source {
  readonly alias: string;
  readonly columns: readonly Term[];
  readonly keyed: boolean;
  /** The table behind it, where it is one. */
  readonly table: string | null;
}

interface Body {
  readonly sql: string;
  readonly types: readonly TypeName[];
  /** Which outputs are sealed columns passed through. */
  readonly sealed: readonly boolean[];
}

/** @param bold also picks rows by order where the caller has no key to order by, which the copies could not follow */
export function randomQuestion(world: World, dice: Dice, bold = false): Question {
  const sighted = world.tables.some((t) => visibleColumns(t).length > 0);
  return { text: sighted ? new Questions(world, dice, bold).statement().sql : 'select 1' };
}

/** The text as the caller sends it. */
export function asAsked(question: Question): string {
  return question.text.replace(/‹\*(\w+)›/g, '$1.*').replace(/‹([\w.]+)›/g, '$1');
}

/** The text as the copies are asked. */
export function asCopied(question: Question, world: World): string {
  const listed = (alias: string): string => {
    const name = new RegExp(`(\\w+) as ${alias}\\b`).exec(question.text)?.[1] ?? '';
    const table = world.tables.find((t) => t.name === name);
    return (table === undefined ? [] : visibleColumns(table))
      .map((v) => `${alias}.${v.column.name}`)
      .join(', ');
  };
  return question.text
    .replace(/‹\*(\w+)›/g, (_, alias: string) => listed(alias))
    .replace(/‹([\w.]+)›/g, (_, column: string) => (column.includes('.o') ? column : `${column}_key`));
}

class Questions {
  readonly #world: World;
  readonly #dice: Dice;
  #aliases = 0;
  #tables: Source[] = [];

  readonly #bold: boolean;

  constructor(world: World, dice: Dice, bold: boolean) {
    this.#world = world;
    this.#dice = dice;
    this.#bold = bold;
  }

  statement(): Body {
    const dice = this.#dice;
    if (!dice.chance(0.12)) return this.#query(2);
    const inner = this.#query(1);
    const alias = this.#alias('w');
    this.#tables.push(this.#derived(alias, inner));
    const outer = this.#query(1);
    const how = dice.of(['', '', 'materialized ', 'not materialized ']);
    return { ...outer, sql: `with ${alias} as ${how}(${inner.sql}) ${outer.sql}` };
  }

  #alias(letter: string): string {
    return `${letter}${++this.#aliases}`;
  }

  #derived(alias: string, body: Body): Source {
    const columns = body.types.map((type, i) => ({
      sql: `${alias}.o${i + 1}`,
      type,
      sealed: body.sealed[i] === true,
    }));
    return { alias, columns, keyed: false, table: null };
  }

  #query(depth: number): Body {
    return this.#dice.chance(0.16) ? this.#setOperation(depth) : this.#select(depth);
  }

  #setOperation(depth: number): Body {
    const dice = this.#dice;
    const types = dice.times(1, 3, () => dice.of(COMMON));
    const [left, right] = [this.#operand(types), this.#operand(types)];
    const operator = dice.of(['union', 'union all', 'intersect', 'intersect all', 'except', 'except all']);
    const tail = depth > 1 && dice.chance(0.4) ? ` order by 1 limit ${dice.upTo(6)}` : '';
    const sealed = types.map(() => false);
    return { sql: `${left} ${operator} ${right}${tail}`, types, sealed };
  }

  #operand(types: readonly TypeName[]): string {
    if (this.#dice.chance(0.2)) return this.#rowsOf(types);
    const source = this.#table();
    const terms = new Expressions(this.#dice, source.columns);
    const outputs = types.map((t, i) => `${terms.value(t, 1)} as o${i + 1}`);
    const where = this.#dice.chance(0.5) ? ` where ${this.#semiJoinOr(source, terms)}` : '';
    return `(select ${outputs.join(', ')} from ${source.table} as ${source.alias}${where})`;
  }

  #semiJoinOr(source: Source, terms: Expressions): string {
    return (this.#dice.chance(0.4) ? this.#semiJoin([source]) : null) ?? terms.predicate(2);
  }

  #rowsOf(types: readonly TypeName[]): string {
    const alias = this.#alias('v');
    const names = types.map((_, i) => `o${i + 1}`).join(', ');
    return `(select ${names} from (values ${this.#rowOf(types)}, ${this.#rowOf(types)}) as ${alias}(${names}))`;
  }

  #rowOf(types: readonly TypeName[]): string {
    const terms = new Expressions(this.#dice, []);
    return `(${types.map((t) => `${terms.literal(t)}::${t}`).join(', ')})`;
  }

  #table(): Source {
    const tables = this.#world.tables.filter((t) => visibleColumns(t).length > 0);
    const table = this.#dice.of(tables);
    const alias = this.#alias('a');
    const shown = visibleColumns(table);
    const columns = shown.map(({ column }) => ({
      sql: `${alias}.${column.name}`,
      type: column.type,
      sealed: table.sealed.includes(column.name),
    }));
    const keyed = shown.some((v) => v.column.name === 'id' && v.masked === 'none');
    return { alias, columns, keyed, table: table.name };
  }

  /** A FROM item and its text. */
  #source(depth: number): readonly [Source, string] {
    const dice = this.#dice;
    const [common] = this.#tables;
    if (common !== undefined && dice.chance(0.6)) {
      const alias = this.#alias('c');
      const columns = common.columns.map((c) => ({ ...c, sql: c.sql.replace(common.alias, alias) }));
      return [{ ...common, alias, columns }, `${common.alias} as ${alias}`];
    }
    if (dice.chance(0.14)) return this.#values();
    if (depth > 0 && dice.chance(0.2)) {
      const body = this.#query(depth - 1);
      const alias = this.#alias('d');
      return [this.#derived(alias, body), `(${body.sql}) as ${alias}`];
    }
    const source = this.#table();
    return [source, `${source.table} as ${source.alias}`];
  }

  #values(): readonly [Source, string] {
    const alias = this.#alias('v');
    const types: readonly TypeName[] = ['int4', 'text'];
    const columns = types.map((type, i) => ({ sql: `${alias}.o${i + 1}`, type, sealed: false }));
    const text = `(values (1, 'x'), (2, null), (57, '[redacted]')) as ${alias}(o1, o2)`;
    return [{ alias, columns, keyed: false, table: null }, text];
  }

  #from(depth: number): readonly [readonly Source[], string] {
    const dice = this.#dice;
    const [first, text] = this.#source(depth);
    const sources = [first];
    let sql = text;
    for (let more = dice.of([0, 0, 0, 1, 1, 2]); more > 0; more--) {
      const joined = this.#join(sources, depth);
      if (joined === null) break;
      sources.push(joined[0]);
      sql += joined[1];
    }
    return [sources, sql];
  }

  #join(sources: readonly Source[], depth: number): readonly [Source, string] | null {
    const dice = this.#dice;
    const [right, text] = this.#source(depth > 1 ? 1 : 0);
    const pairs = this.#keyPairs(
      sources.flatMap((s) => s.columns),
      right.columns,
    );
    if (pairs.length === 0) return null;
    const on = dice.of([1, 1, 1, 2]) === 1 ? [dice.of(pairs)] : dice.some(pairs, 0.3);
    const conditions = (on.length === 0 ? [dice.of(pairs)] : on).map(([l, r]) => `‹${l.sql}› = ‹${r.sql}›`);
    return [right, ` ${dice.of(['join', 'left join', 'left join'])} ${text} on ${conditions.join(' and ')}`];
  }

  #keyPairs(left: readonly Term[], right: readonly Term[]): readonly (readonly [Term, Term])[] {
    return left
      .filter((l) => l.sealed)
      .flatMap((l) =>
        right.filter((r) => r.sealed && r.type === l.type).map((r): readonly [Term, Term] => [l, r]),
      );
  }

  #select(depth: number): Body {
    const dice = this.#dice;
    const [sources, from] = this.#from(depth);
    const terms = new Expressions(
      dice,
      sources.flatMap((s) => s.columns),
      (t) => this.#scalarQuery(t, sources),
    );
    const [only] = sources;
    const mayFail = depth === 2 && sources.length === 1 && only?.table !== null;
    const failing = mayFail && dice.chance(this.#bold ? 0.3 : 0.08) ? this.#failing(from, terms) : null;
    if (failing !== null) return failing;
    const where = this.#where(sources, terms);
    const keyed = this.#bold || sources.every((s) => s.keyed);
    const shape = dice.upTo(9);
    if (shape >= 7) return this.#grouped(from, where, terms, keyed);
    if (shape === 6) return this.#windowed(from, where, terms, keyed);
    if (only !== undefined && only.table !== null && depth === 2 && dice.chance(0.08)) {
      return { sql: `select ‹*${only.alias}› from ${from}${where}`, types: [], sealed: [] };
    }
    return this.#plain(from, where, terms, keyed);
  }

  /**
   * A question that fails on some values, in each clause. Alone, and at the top: whatever stops
   * early above it, or decides before it, would let the planner choose on which rows it fails.
   */
  #failing(from: string, terms: Expressions): Body | null {
    const dice = this.#dice;
    const predicate = terms.mayFail();
    if (predicate === null) return null;
    const number = terms.columnOf('int4');
    const clauses = [
      (fails: string) => `select max(${fails}) as o1 from ${from}`,
      (fails: string) => `select count(*) as o1 from ${from} group by ${fails}`,
      (fails: string) => `select count(*) over (partition by ${fails}) as o1 from ${from}`,
      (fails: string) => `select ${number} as o1 from ${from} order by ${fails}`,
      (fails: string) => `select distinct ${fails} as o1 from ${from}`,
      (fails: string) => `select f.o1 from (select ${fails} as o1 from ${from}) as f where f.o1 < 1`,
    ];
    if (number !== null && dice.chance(0.4)) return plainOf(dice.of(clauses)(`57 / (${number} - 57)`));
    switch (dice.upTo(5)) {
      case 0:
        return this.#plainColumns(
          from,
          ` where case when ${terms.predicate(1)} then ${predicate} else false end`,
          terms,
        );
      case 1:
        return plainOf(`select count(*) filter (where ${predicate}) as o1 from ${from}`);
      case 2:
        return plainOf(`select case when ${terms.predicate(1)} then ${predicate} end as o1 from ${from}`);
      case 3:
        if (number === null) break;
        return plainOf(
          `select ${number} as o1, count(*) as o2 from ${from} group by ${number} having 57 / (${dice.of([number, `max(${number})`])} - 57) < 1`,
        );
    }
    return this.#plainColumns(from, ` where ${predicate}`, terms);
  }

  #where(sources: readonly Source[], terms: Expressions): string {
    const dice = this.#dice;
    const conjuncts = dice.times(0, dice.of([0, 1, 2, 2]), () =>
      dice.chance(0.4) ? (this.#semiJoin(sources) ?? terms.predicate(2)) : terms.predicate(2),
    );
    return conjuncts.length === 0 ? '' : ` where ${conjuncts.join(' and ')}`;
  }

  /** IN or EXISTS over a table, on sealed keys. */
  #semiJoin(sources: readonly Source[]): string | null {
    const dice = this.#dice;
    const inner = this.#table();
    const pairs = this.#keyPairs(
      sources.flatMap((s) => s.columns),
      inner.columns,
    );
    if (pairs.length === 0) return null;
    const [outer, key] = dice.of(pairs);
    const terms = new Expressions(dice, inner.columns);
    const more = dice.chance(0.4) ? terms.predicate(1) : 'true';
    const from = `${inner.table} as ${inner.alias}`;
    const not = dice.chance(0.4) ? 'not ' : '';
    return dice.chance(0.5)
      ? `${not}‹${outer.sql}› in (select ‹${key.sql}› from ${from} where ${more})`
      : `${not}exists (select 1 from ${from} where ‹${key.sql}› = ‹${outer.sql}› and ${more})`;
  }

  #scalarQuery(type: TypeName, sources: readonly Source[]): string | null {
    const dice = this.#dice;
    if (type !== 'int4' && type !== 'text') return null;
    const inner = this.#table();
    const column = inner.columns.filter((c) => c.type === type)[0];
    if (column === undefined) return null;
    const pairs = this.#keyPairs(
      sources.flatMap((s) => s.columns),
      inner.columns,
    );
    const where = pairs.length > 0 && dice.chance(0.5) ? this.#correlated(dice.of(pairs)) : '';
    return `(select ${dice.of(['max', 'min'])}(${column.sql}) from ${inner.table} as ${inner.alias}${where})`;
  }

  #correlated([outer, key]: readonly [Term, Term]): string {
    return ` where ‹${key.sql}› = ‹${outer.sql}›`;
  }

  #plainColumns(from: string, where: string, terms: Expressions): Body {
    const columns = this.#dice.times(1, 2, () => terms.column()).filter((c) => c !== null);
    const list = columns.map((c, i) => `${c.sql} as o${i + 1}`).join(', ');
    return {
      sql: `select ${list} from ${from}${where}`,
      types: columns.map((c) => c.type),
      sealed: columns.map(() => false),
    };
  }

  #plain(from: string, where: string, terms: Expressions, keyed: boolean): Body {
    const dice = this.#dice;
    const outputs = dice.times(1, 4, () => {
      const direct = dice.chance(0.5) ? terms.column() : null;
      const type = direct?.type ?? dice.of(COMMON);
      return { sql: direct?.sql ?? terms.value(type, 2), type, sealed: direct?.sealed === true };
    });
    const distinct = dice.chance(0.2) ? 'distinct ' : '';
    const list = outputs.map((o, i) => `${o.sql} as o${i + 1}`).join(', ');
    const body = { types: outputs.map((o) => o.type), sealed: outputs.map((o) => o.sealed) };
    const key = distinct === '' && keyed && dice.chance(0.12) ? terms.column() : null;
    if (key !== null) {
      const sql = `select distinct on (${key.sql}) ${list} from ${from}${where} order by ${key.sql}`;
      return { ...body, sql };
    }
    const tail = this.#tail(outputs.length, keyed || distinct !== '');
    return { ...body, sql: `select ${distinct}${list} from ${from}${where}${tail}` };
  }

  /** ORDER BY and LIMIT; where ties could not be broken by key, every output orders. */
  #tail(width: number, determined: boolean): string {
    const dice = this.#dice;
    if (!dice.chance(0.3)) return '';
    const all = Array.from({ length: width }, (_, i) => i + 1);
    const by = determined ? dice.some(all, 0.5) : all;
    const keys = by.map((n) => `${n}${dice.of(['', ' desc', ' nulls first', ' desc nulls last'])}`);
    const offset = dice.chance(0.2) ? ` offset ${dice.upTo(2)}` : '';
    return `${keys.length === 0 ? '' : ` order by ${keys.join(', ')}`} limit ${dice.upTo(5)}${offset}`;
  }

  #grouped(from: string, where: string, terms: Expressions, keyed: boolean): Body {
    const dice = this.#dice;
    const keys = dice.times(0, 2, () => {
      const column = dice.chance(0.6) ? terms.column() : null;
      const type = column?.type ?? dice.of(COMMON);
      return { sql: column?.sql ?? terms.value(type, 1), type };
    });
    const aggregates = dice.times(1, 3, () => terms.aggregate(keyed));
    const list = [...keys.map((k) => k.sql), ...aggregates.map((a) => a.sql)].map(
      (sql, i) => `${sql} as o${i + 1}`,
    );
    const by = keys.length === 0 ? '' : ` group by ${keys.map((_, i) => i + 1).join(', ')}`;
    const having = dice.chance(0.25)
      ? ` having ${dice.of(['count(*) > 1', 'count(*) < 3', terms.having()])}`
      : '';
    const sql = `select ${list.join(', ')} from ${from}${where}${by}${having}${this.#tail(list.length, this.#bold)}`;
    const types = [...keys, ...aggregates].map((o) => o.type);
    return { sql, types, sealed: types.map(() => false) };
  }

  #windowed(from: string, where: string, terms: Expressions, keyed: boolean): Body {
    const dice = this.#dice;
    const outputs = [terms.column()?.sql ?? '1', ...dice.times(1, 2, () => terms.window(keyed))];
    const list = outputs.map((sql, i) => `${sql} as o${i + 1}`).join(', ');
    return { sql: `select ${list} from ${from}${where}`, types: [], sealed: [] };
  }
}

/** At the top, so that nobody asks what its columns are. */
function plainOf(sql: string): Body {
  return { sql, types: [], sealed: [] };
}

const COMMON: readonly TypeName[] = ['int4', 'text', 'numeric', 'bool', 'date', 'timestamptz'];
