import { emit, type GovernedPlan } from 'osl-compiler';
import t from 'tap';
import { PermittedSets } from '../../../src/ask/data/runtime/permitted-counts.js';
import { generatedSql } from '../../../src/base/sql.js';
import type { BoundValue, GovernedEngine } from '../../../src/engine/index.js';
import type { Service } from '../../../src/service/service.js';
import { differ } from '../../support/differ.js';
import { partOf } from '../../support/part.js';
import { replacing } from '../../support/replacing.js';
import { sealedParts, sealing } from '../../support/sealed-parts.js';
import { startForms } from './fixture.js';
import { insertNotes, NOTES, type Note, toyEmbeddings, vectorsWorld } from './vectors.js';

t.setTimeout(600_000);

/** Which lane serves: below the limit each passage is compared, above it candidates are found first. */
const lanes = { few: new PermittedSets(1_000_000), many: new PermittedSets(0) };
let sets = lanes.few;
/** While set, candidates are the nearest of all passages, and of those what this caller may see: to be noticed. */
let leaking: string | null = null;
/** Every governed statement, as it was sent. */
let sent: { readonly plan: GovernedPlan; readonly values: readonly BoundValue[] }[] = [];

const server = await toyEmbeddings();
t.teardown(() => server.close());
const world = vectorsWorld('{ max_top_k: 50 }', NOTES, server.url);
const forms = await startForms(
  world,
  (service: Service): Service => ({
    ...sealing(service, {
      engines: new Map([...sealedParts(service).engines].map(([name, engine]) => [name, watched(engine)])),
    }),
    permitted: { areMany: (...args) => sets.areMany(...args) },
  }),
);
t.teardown(() => forms.close());
const { system } = forms.test.engine;

function watched(engine: GovernedEngine): GovernedEngine {
  return replacing(engine, {
    async execute(plan, values, options, sink) {
      const given = leaking === null ? values : await leaky(plan, values, leaking);
      sent.push({ plan, values: given });
      return engine.execute(plan, given, options, sink);
    },
  });
}

function slotNamed(plan: GovernedPlan, name: string): number {
  return emit(plan).slots.findIndex((s) => s.kind === 'given' && s.name === name);
}

function textOf(value: BoundValue | undefined): string {
  return Buffer.from(value?.bytes ?? []).toString('utf8');
}

/** Of the nearest among all, only those that the caller may see come into question: so many of its own nearest. */
async function leaky(
  plan: GovernedPlan,
  values: readonly BoundValue[],
  who: string,
): Promise<readonly BoundValue[]> {
  const at = slotNamed(plan, 'candidates');
  if (!emit(plan).sql.includes('<~>')) return values;
  const [row] = await system.query(
    generatedSql(`select count(*) as n from (
       select entity_key, lang from osl_content.notes__raw__bits
        order by bits operator(public.<~>) public.binary_quantize($1::public.vector), chunk_id limit $2::int8) as nearest
      where ${who === 'user:eu' ? 'entity_key % 2 = 1' : "lang = 'de'"}`),
    [textOf(values[slotNamed(plan, 'vector')]), textOf(values[at])],
  );
  return values.map((v, i) => (i === at ? { format: 0, bytes: Buffer.from(String(row?.['n'])) } : v));
}

const OPERATORS = `similarity(text) as similar, similarity(text, 'w1 w2') as to_text,
  classify(text, ARRAY['w1', 'w2', 'w3']) as class, tag(text, ARRAY['w1', 'w2'], threshold => 0.1) as tags,
  rank(text) as rank, rank(text, 'w3 w4', lambda => 0.5) as diverse, dedup(text, threshold => 0.9) as dedup,
  outlier(text, k => 2) as outlier, cluster(text, k => 3) as cluster`;

const QUERIES = [NOTES[10]?.body ?? '', 'w1 w2 w3', 'w17 w203 w44 w250 w9'];

const STATEMENTS: readonly string[] = QUERIES.flatMap((query) => {
  const from = (k: number): string => `RETRIEVE(facet => 'notes', query => '${query}', top_k => ${k})`;
  return [
    `select text, score, cite, article_id, lang, ${OPERATORS} from ${from(10)}`,
    `select text, score from ${from(50)}`,
    `select text, score from ${from(5).replace(')', ", skip => 3, per => 'document', min_score => 0.1)")}`,
    `select text, score from ${from(1)} where lang = 'de'`,
    `select text, score from ${from(5)} where article_id in (1, 2, 3)`,
    `select a.id, count(*) as n from osl.entities.article a join ${from(20)} r on a.id = r.article_id group by a.id order by a.id`,
  ];
});

/** Everything that a caller can learn: rows, refusals, and the plans that it is shown. */
async function seen(who: string): Promise<readonly string[]> {
  const answers: string[] = [];
  for (const statement of STATEMENTS) {
    const { rows, status, code } = await forms.ask(who, statement);
    const { json } = await forms.ask(who, statement, { explain: true });
    answers.push(JSON.stringify([status, code, rows, (json as { plan: unknown }).plan])); // explain's shape
  }
  return answers;
}

const HIDDEN: Readonly<Record<string, (n: Note) => boolean>> = {
  'user:eu': (n) => n.article % 2 === 0,
  'user:de': (n) => n.lang !== 'de',
};

interface Lane {
  readonly name: string;
  readonly sets: PermittedSets;
  /** True if it looks at signs. */
  readonly signs: boolean;
}

const EXACT: Lane = { name: 'one by one', sets: lanes.few, signs: false };
const SIGNS: Lane = { name: 'by signs, then exactly', sets: lanes.many, signs: true };

async function through(lane: Lane, who: string): Promise<readonly string[]> {
  sets = lane.sets;
  sent = [];
  const answers = await seen(who);
  const vectors = sent.filter(({ plan }) => slotNamed(plan, 'vector') >= 0);
  const signs = vectors.filter(({ plan }) => emit(plan).sql.includes('<~>')).length;
  const others = vectors.length - signs;
  // Where signs leave a doubt, the other lane has the last word.
  if (lane.signs ? signs === 0 || others >= signs : others === 0 || signs > 0)
    throw new Error(`${lane.name}: ${signs} searches by signs, ${others} others`);
  return answers;
}

const changes: Readonly<Record<string, (hidden: (n: Note) => boolean) => string>> = {
  'hidden documents changed into what is asked for': (hidden) =>
    NOTES.filter(hidden)
      .map((n, i) => `update press.note set body = '${QUERIES[i % 3]}' where id = '${n.id}';`)
      .join('\n'),
  'hidden documents removed': (hidden) =>
    `delete from press.note where id in (${NOTES.filter(hidden)
      .map((n) => `'${n.id}'`)
      .join(', ')});`,
  'hidden documents back': (hidden) => insertNotes(NOTES.filter(hidden)),
};

function differences(some: readonly string[], others: readonly string[]): number {
  return some.filter((answer, i) => answer !== others[i]).length;
}

for (const [who, hidden] of partOf('callers of lanes', Object.entries(HIDDEN), 2)) {
  t.test(`${who} cannot tell what it may not see, whichever exact lane serves`, async (t) => {
    const before = await through(EXACT, who);
    t.same(await through(SIGNS, who), before, 'both lanes find the same');
    const all = await through(SIGNS, 'user:ann');
    leaking = who;
    const leaked = await through(SIGNS, who);
    leaking = null;
    for (const [name, change] of Object.entries(changes)) {
      await system.script(generatedSql(change(hidden)));
      await forms.reindex();
      leaking = who;
      const differs = differences(await through(SIGNS, who), leaked);
      leaking = null;
      if (name.includes('changed')) t.ok(differs > 0, `${name}: ${differs} answers of a leaky lane differ`);
      for (const lane of [EXACT, SIGNS]) {
        t.same(await through(lane, who), before, `${name}, ${lane.name}`);
      }
      const restored = name === 'hidden documents back';
      if (restored) t.same(await through(SIGNS, 'user:ann'), all);
      else differ(t, await through(SIGNS, 'user:ann'), all, `${name} is seen by who may see it`);
    }
  });
}
