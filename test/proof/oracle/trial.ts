import {
  compile,
  compileTemplate,
  type EmittedSql,
  emit,
  type GovernedPlan,
  oidOf,
  QueryError,
  shapeOf,
  valuesOf,
} from 'osl-compiler';
import { withOtherLiterals } from '../../language/compiler/tokens.js';
import { type Answer, type Engine, openEngine } from '../golden/engine.js';
import { padOf } from '../golden/outcome.js';
import { allClear, copiesSql, copyCatalog, joinedCopiesSql, tablesSql } from './copies.js';
import { diceFrom } from './dice.js';
import { asAsked, asCopied, type Question } from './questions.js';
import { accessOf, catalogOf, type World } from './world.js';

/** A world whose tables and copies stand in an engine. */
export interface Stage {
  readonly world: World;
  /** The caller's plan; null where policy refuses the key that the question joins on. */
  readonly governed: (question: Question) => GovernedPlan | null;
  /** What the caller is answered. */
  readonly answer: (emitted: EmittedSql) => Promise<Answer>;
  /** What the copies say to the same question. */
  readonly truth: (question: Question) => Promise<Answer>;
  /** Their answer if computed columns are joined when they are read; by loops, which run conditions on each row. */
  readonly joinedTruth: (question: Question) => Promise<Answer>;
}

const SCHEMAS = ['whole', 'copies', 'joined', 'twin', 'twincopies'];

export function openOracle(): Promise<Engine> {
  return openEngine(SCHEMAS);
}

export async function stage(world: World, engine: Engine): Promise<Stage> {
  await engine.setUp(`begin; ${tablesSql(world, 'whole')} ${copiesSql(world, 'whole', 'copies')} commit`);
  const [catalog, access] = [catalogOf(world, 'whole'), accessOf(world)];
  const ofCopies = (question: Question, schema: string): Promise<Answer> => {
    const copied = copyCatalog(world, schema);
    const { sql, slots } = emit(compile(asCopied(question, world), copied, allClear(copied)));
    return engine.ask(sql, valuesFor(slots, world));
  };
  return {
    world,
    governed: (question) => planOrRefusal(asAsked(question), catalog, access),
    answer: ({ sql, slots }) => engine.ask(sql, valuesFor(slots, world)),
    truth: (question) => ofCopies(question, 'copies'),
    joinedTruth: async (question) => {
      await engine.setUp(joinedCopiesSql(world, 'copies', 'joined'));
      await engine.setUp('set enable_hashjoin = off; set enable_mergejoin = off');
      const said = await ofCopies(question, 'joined');
      await engine.setUp('reset enable_hashjoin; reset enable_mergejoin');
      // So that the tables can be dropped.
      await engine.setUp(world.tables.map(({ name }) => `drop view joined.${name};`).join(' '));
      return said;
    },
  };
}

/** How many plans came from the template of a text with other literals, as the service's cache has them. */
export const templates = { asked: 0, filled: 0 };

/** The plan, by way of the same question with other literals; null where that one has another plan, or none. */
function fromTemplate(
  text: string,
  catalog: Parameters<typeof compile>[1],
  access: Parameters<typeof compile>[2],
): GovernedPlan | null {
  const shaped = shapeOf(text);
  const other = withOtherLiterals(text, diceFrom(text.length));
  if (shaped === null || other === text) return null;
  const reshaped = shapeOf(other);
  if (reshaped?.shape !== shaped.shape) return null;
  templates.asked++;
  try {
    const { template } = compileTemplate(other, reshaped, catalog, access);
    const plan = template?.fill(shaped.literals) ?? null;
    if (plan !== null) templates.filled++;
    return plan;
  } catch (error) {
    if (error instanceof QueryError) return null;
    throw error;
  }
}

export function planOrRefusal(
  text: string,
  catalog: Parameters<typeof compile>[1],
  access: Parameters<typeof compile>[2],
): GovernedPlan | null {
  try {
    return fromTemplate(text, catalog, access) ?? compile(text, catalog, access);
  } catch (error) {
    if (error instanceof QueryError && error.entry === 'keyNotClear') return null;
    if (error instanceof QueryError) throw new Error(`${error.code} ${error.message}: ${text}`);
    throw new Error(`${error instanceof Error ? error.stack : String(error)}: ${text}`);
  }
}

export function valuesFor(slots: EmittedSql['slots'], world: World): readonly (string | null)[] {
  return valuesOf<string | null>(slots, {
    text: (value) => value,
    client: () => null,
    attribute: (subject, name) => {
      const values = world.subjects[subject]?.get(name) ?? [];
      return values === 'any' ? [] : values;
    },
    pad: (pad, domain) => padOf(pad, domain).toString('hex'),
    runtime: () => '[]',
    keys: () => [],
    given: () => '',
  });
}

/** An answer as text that is equal for equal answers, whatever the order of their rows. */
export function asBytes(answer: Answer): string {
  if (answer.sqlstate !== null) return answer.sqlstate;
  const rows = answer.rows.map((r) => JSON.stringify(r.map((v, i) => plainNumber(v, answer.oids[i]))));
  return [JSON.stringify(answer.oids), ...rows.sort()].join('\n');
}

const NUMERIC = oidOf('numeric');

/** Of two equal numerics that differ in scale, which one GROUP BY or INTERSECT keeps is the engine's choice. */
function plainNumber(value: string | null, oid: number | undefined): string | null {
  return value === null || oid !== NUMERIC || !value.includes('.') ? value : value.replace(/\.?0+$/, '');
}
