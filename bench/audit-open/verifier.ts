import { verifyAuditLog } from '../../audit/index.js';

/** Run by the bench: verifies a log and prints the time and memory used. */
const [dir = ''] = process.argv.slice(2);
const started = performance.now();
let told = 0;
const verdict = await verifyAuditLog(dir, {
  progress: () => {
    told += 1;
  },
});
const seconds = (performance.now() - started) / 1_000;
const { records, problem, openDecisions } = verdict;
if (problem !== null) throw new Error(problem.message);
const mib = process.resourceUsage().maxRSS / 1_024;
process.stdout.write(`${JSON.stringify({ seconds, records, openDecisions, told, mib })}\n`);
