import { readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { BUGS } from './bugs.js';
import { bundleGateway } from './bundle.js';
import { type Plan, planOf } from './plan.js';
import { type RunResult, run } from './run.js';
import { shrink } from './shrink.js';

const HELP = `npm run simulate -- [--seed N] [--runs N] [--sessions N] [--plan FILE] [--bug NAME] [--trace]

Runs the gateway's own code in simulated worlds: clock, disk, network, database, clients. Same seed, same run.

  --seed      first seed (default 1)
  --runs      number of runs, each with the next seed (default 1)
  --sessions  sessions of each run (default 60)
  --plan      a plan written after an earlier run, instead of seeds
  --bug       plants a bug of bugs.ts first; \`list\` prints their names
  --trace     prints each step

A run that finds something is made shorter for a minute, and its plan is written to a file.
Exit status: 0 nothing found, 1 something found.
`;

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    runs: { type: 'string', default: '1' },
    sessions: { type: 'string', default: '60' },
    plan: { type: 'string' },
    bug: { type: 'string' },
    trace: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  },
});

const SHRINK_SECONDS = 60;
const print = (text: string): void => void process.stdout.write(`${text}\n`);

if (values.help) print(HELP);
else if (values.bug === 'list') print(BUGS.map(({ name }) => name).join('\n'));
else await simulate();

async function simulate(): Promise<void> {
  const bug = BUGS.find(({ name }) => name === values.bug) ?? null;
  if (values.bug !== undefined && bug === null) throw new Error(`there is no bug ${values.bug}`);
  const code = await bundleGateway(bug);
  const began = performance.now();
  let sessions = 0;
  let exchanges = 0;
  for (const plan of plans()) {
    const result = await run(plan, code, values.trace ? print : null);
    sessions += plan.sessions.length;
    exchanges += result.exchanges;
    if (result.violations.length > 0 || values.runs === '1') print(summaryOf(plan, result));
    if (result.violations.length === 0) continue;
    process.exitCode = 1;
    if (values.plan === undefined && !values.trace) {
      const { plan: shorter, result: again, runs } = await shrink(plan, code, result, SHRINK_SECONDS);
      const file = join(tmpdir(), `simulation-${plan.seed}.json`);
      writeFileSync(file, `${JSON.stringify(shorter, null, 1)}\n`);
      print(
        `after ${runs} shorter runs: ${summaryOf(shorter, again)}\nnpm run simulate -- --plan ${file} --trace`,
      );
    }
    break;
  }
  print(
    `${sessions} sessions, ${exchanges} questions in ${((performance.now() - began) / 1_000).toFixed(1)} s`,
  );
}

function* plans(): Generator<Plan> {
  if (values.plan !== undefined) {
    yield JSON.parse(readFileSync(values.plan, 'utf8')) as Plan; // written by an earlier run
    return;
  }
  const first = Number(values.seed);
  for (let seed = first; seed < first + Number(values.runs); seed++)
    yield planOf(seed, { sessions: Number(values.sessions) });
}

function summaryOf(plan: Plan, { steps, exchanges, virtualUs, digest, violations }: RunResult): string {
  const acts = plan.sessions.reduce((sum, session) => sum + session.acts.length, 0);
  return [
    `seed ${plan.seed}: ${plan.gateways} gateways, ${plan.sessions.length} sessions with ${acts} acts, ${plan.events.length} events: ${steps} steps, ${exchanges} questions, ${(virtualUs / 1e6).toFixed(1)} s, digest ${digest}`,
    ...violations.map(({ what, detail, atUs }) => `  ${what}, at ${(atUs / 1e3).toFixed(3)} ms: ${detail}`),
  ].join('\n');
}
