import { readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import {
  type Access,
  type Catalog,
  compile,
  compileTemplate,
  emit,
  explain,
  QueryError,
  shapeOf,
} from 'osl-compiler';
import t from 'tap';
import { parseCases } from '../../proof/golden/cases.js';
import { CALLERS, CATALOG } from '../../proof/golden/catalog.js';
import { CASES, caseFiles } from '../../proof/golden/files.js';
import { type Dice, diceFrom } from '../../proof/oracle/dice.js';
import { asAsked, randomQuestion } from '../../proof/oracle/questions.js';
import { accessOf, catalogOf, randomWorld } from '../../proof/oracle/world.js';
import { TRICKY } from './shape-texts.js';
import { withOtherLiterals } from './tokens.js';

/** A plan that comes from a template is, field for field, the one that compiling its text gives. */

/** Others of each text; nightly: more. */
const VARIANTS = Number(process.env['OSL_SHAPE_VARIANTS'] ?? 6);

interface Count {
  asked: number;
  filled: number;
}

function same(text: string, catalog: Catalog, access: Access, dice: Dice, count: Count): void {
  const shaped = shapeOf(text);
  if (shaped === null) return;
  let template: ReturnType<typeof compileTemplate>['template'];
  try {
    ({ template } = compileTemplate(text, shaped, catalog, access));
  } catch (error) {
    if (error instanceof QueryError) return;
    throw error;
  }
  if (template === null || shaped.literals.length === 0) return;
  for (let i = 0; i < VARIANTS; i++) {
    const other = i === 0 ? text : withOtherLiterals(text, dice);
    const reshaped = shapeOf(other);
    if (reshaped?.shape !== shaped.shape) continue;
    count.asked++;
    const filled = template.fill(reshaped.literals);
    if (filled === null) {
      if (i === 0) throw new Error(`a template does not know its own text: ${text}`);
      continue;
    }
    count.filled++;
    const fresh = compile(other, catalog, access);
    const equal =
      isDeepStrictEqual({ ...filled }, { ...fresh }) &&
      isDeepStrictEqual(emit(filled), emit(fresh)) &&
      isDeepStrictEqual(explain(filled), explain(fresh));
    if (!equal) {
      throw new Error(
        [
          text,
          other,
          emit(filled).sql,
          JSON.stringify(filled.slots),
          emit(fresh).sql,
          JSON.stringify(fresh.slots),
        ].join('\n'),
      );
    }
  }
}

t.test('over the golden texts and the tricky ones', async (t) => {
  const dice = diceFrom(7);
  const count = { asked: 0, filled: 0 };
  for (const file of caseFiles()) {
    for (const { query, caller } of parseCases(readFileSync(new URL(file, CASES), 'utf8'))) {
      const access = CALLERS.get(caller)?.access;
      if (access !== undefined) same(query, CATALOG, access, dice, count);
    }
  }
  const golden = { ...count };
  const owner = CALLERS.get('owner')?.access;
  if (owner === undefined) throw new Error('no owner');
  for (let round = 0; round < 5; round++)
    for (const text of TRICKY) {
      compile(text, CATALOG, owner);
      same(text, CATALOG, owner, dice, count);
    }
  t.comment(`golden ${JSON.stringify(golden)}, with tricky ${JSON.stringify(count)}`);
  t.ok(count.filled > count.asked / 2, 'most need no compilation');
});

t.test('over random questions to random worlds', async (t) => {
  const count = { asked: 0, filled: 0 };
  for (let seed = 0; seed < Number(process.env['OSL_SHAPE_WORLDS'] ?? 15); seed++) {
    const dice = diceFrom(90_000 + seed);
    const world = randomWorld(dice);
    const [catalog, access] = [catalogOf(world, 'whole'), accessOf(world)];
    for (let i = 0; i < 10; i++) same(asAsked(randomQuestion(world, dice)), catalog, access, dice, count);
  }
  t.comment(JSON.stringify(count));
  t.ok(count.filled > count.asked / 2, 'most need no compilation');
});

t.test('what the template cannot know is compiled, and fails as ever', async (t) => {
  const access = CALLERS.get('owner')?.access;
  if (access === undefined) throw new Error('no owner');
  const text = "select id from customer where id = '5'";
  const shaped = shapeOf(text);
  const wrong = "select id from customer where id = 'five'";
  if (shaped === null) throw new Error('not plain');
  const { template } = compileTemplate(text, shaped, CATALOG, access);
  t.not(template?.fill([{ value: '6', start: 0, sign: -1 }]), null);
  t.equal(template?.fill(shapeOf(wrong)?.literals ?? []), null);
  t.throws(() => compile(wrong, CATALOG, access), { code: 'E0511' });
});
