import type { Command } from 'commander';
import type { DoctorFlags } from '../doctor/run.js';
import { addListenOptions, manifestOption, policyOption } from '../flags.js';

const HELP = `
Looks at files, data directory, ports, certificates, keys, clocks, and at each Postgres of the manifest: its role, what
its log keeps, pgvector, and whether tables and columns are as declared. Changes nothing, and may run beside a server.

Exit status: 0 nothing fails (there may be warnings), 1 something does, 2 usage or configuration.

Examples:
  $ osl doctor
  $ osl doctor --json | jq '.findings[] | select(.state == "fail")'`;

export function addDoctor(program: Command): void {
  const command = program.command('doctor').addOption(manifestOption()).addOption(policyOption());
  addListenOptions(command)
    .option('--json', 'findings as JSON on standard output')
    .addHelpText('after', HELP)
    .action(async (flags: DoctorFlags) => (await import('../doctor/run.js')).runDoctor(flags));
}
