import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { CONFORMANCE_LEVELS } from '../../../src/surfaces/rest/routes/service.js';
import { gapsIn } from './cases.js';
import { CONTRACT } from './contract.js';
import { metLevels, RULES } from './levels.js';
import { conformancePage } from './page.js';
import { unitsOf } from './split.js';
import { CHECKS, stateOf } from './states.js';
import { type Exchange, openWorld } from './world.js';

t.setTimeout(600_000);

const SOURCE = join(process.cwd(), '..', 'shared', 'spec', 'interface.md');
const PAGE = join(process.cwd(), 'docs', 'conformance.md');
const LEVELS_FILE = join(process.cwd(), 'src', 'surfaces', 'rest', 'routes', 'service.ts');

t.test(
  'the table quotes the whole contract, in its order',
  { skip: existsSync(SOURCE) ? false : 'the contract lies beside the repository on some machines only' },
  async (t) => {
    const units = unitsOf(readFileSync(SOURCE, 'utf8'));
    t.strictSame(
      Object.values(CONTRACT),
      units.map((u) => u.text),
    );
  },
);

t.test('what proves a rule is there', async (t) => {
  for (const id of RULES) {
    const state = stateOf(id);
    if (state.kind === 'same') t.ok(CHECKS.has(state.as), `${id}: ${state.as} is a check`);
    if (state.kind === 'tested') {
      const file = join(process.cwd(), state.file);
      const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
      for (const title of [...state.positive, ...state.negative])
        t.ok(text.includes(`'${title}'`), `${state.file} has “${title}”`);
    }
  }
  for (const id of CHECKS.keys()) t.ok(id in CONTRACT, `${id} is a rule`);
});

const world = await openWorld();
t.teardown(() => world.close());

const exchanges = new Map<string, readonly Exchange[]>();
for (const [id, check] of CHECKS)
  t.test(id, async (t) => {
    await check(t, world);
    exchanges.set(id, world.exchanges());
    t.ok(exchanges.get(id)?.length, 'the service was asked');
  });

t.test('each proved rule has a positive and a negative case, or a reason why it has none', async (t) => {
  t.same(gapsIn(exchanges), []);
});

t.test('the service declares the levels that are met', async (t) => {
  const { text } = await world.get('user:nil', '/osl/conformance');
  t.strictSame(JSON.parse(text), metLevels());
});

t.test('docs/conformance.md and the declared levels are those of the table', async (t) => {
  const page = conformancePage(exchanges);
  if (process.env['OSL_WRITE_DOCS'] === '1') {
    writeFileSync(PAGE, page);
    const list = /(?<=CONFORMANCE_LEVELS: readonly string\[\] )= \[[^\]]*\];/;
    const levels = metLevels().map((level) => `\n  '${level}',`);
    const source = readFileSync(LEVELS_FILE, 'utf8');
    writeFileSync(LEVELS_FILE, source.replace(list, `= [${levels.join('')}\n];`));
  }
  t.equal(readFileSync(PAGE, 'utf8'), page, 'run OSL_WRITE_DOCS=1 npm test to write it anew');
  t.strictSame(CONFORMANCE_LEVELS, metLevels(), 'the same run writes src/surfaces/rest/routes/service.ts');
});
