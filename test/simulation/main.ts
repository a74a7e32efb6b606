import { parseArgs } from 'node:util';
import { BUGS } from './bugs.js';
import { bundleGateway } from './bundle.js';
import { planOf } from './plan.js';
import { run } from './run.js';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    runs: { type: 'string', default: '1' },
    sessions: { type: 'string', default: '60' },
    bug: { type: 'string' },
    trace: { type: 'boolean', default: false },
    digests: { type: 'boolean', default: false },
  },
});

const bug = BUGS.find(({ name }) => name === values.bug) ?? null;
if (values.bug !== undefined && bug === null) throw new Error(`there is no bug ${values.bug}`);
const code = await bundleGateway(bug);
const first = Number(values.seed);
const trace = values.trace ? (line: string): void => void process.stdout.write(`${line}\n`) : null;
const began = performance.now();
let sessions = 0;
let exchanges = 0;
for (let seed = first; seed < first + Number(values.runs); seed++) {
  const plan = planOf(seed, { sessions: Number(values.sessions) });
  const result = await run(plan, code, trace);
  sessions += plan.sessions.length;
  exchanges += result.exchanges;
  if (result.violations.length > 0 || values.runs === '1' || values.digests)
    process.stdout.write(
      `seed ${seed}: ${result.steps} steps, ${result.exchanges} exchanges, ${(result.virtualUs / 1e6).toFixed(1)} s virtual, digest ${result.digest}\n`,
    );
  for (const violation of result.violations)
    process.stdout.write(`  ${violation.what} at ${violation.atUs} µs: ${violation.detail}\n`);
  if (result.violations.length > 0) {
    process.exitCode = 1;
    break;
  }
}
process.stdout.write(
  `${sessions} sessions, ${exchanges} questions in ${((performance.now() - began) / 1_000).toFixed(1)} s\n`,
);
