import type { Command } from 'commander';
import { addListenOptions, consoleOption, manifestOption, policyOption, workersOption } from '../flags.js';
import type { RunFlags } from '../serve/run.js';

const HELP = `
SIGHUP reads both files, keys, certificates and credentials anew; where one has a fault nothing changes. While the newest
policy is missing or invalid, the last valid one stays in force for OSL_POLICY_KEEP_SECONDS (3600; 0: not at all); then
every request is refused. OSL_POLICY_WATCH=on takes up the policy file when it changes, by the same rule.
Ctrl-C or SIGTERM ends it after what runs.
Warnings go to standard error (OSL_LOG_LEVEL: error, warn, info), as JSON where that is no terminal.
Other settings: OSL_TLS_CERT, OSL_TLS_KEY, OSL_HTTP_TLS (on, off), OSL_PUBLIC_KEYS, OSL_LOCAL_TOKENS (on, off), OSL_TOKEN_ISSUERS,
OSL_TOKEN_AUDIENCES, OSL_MAX_ROWS, OSL_MAX_EVIDENCE, OSL_STATEMENT_TIMEOUT_MS,
OSL_METRICS_FROM, OSL_CORS_ORIGINS, OSL_POLICY_FAILURE (refuse, keep), OSL_POLICY_KEEP_SECONDS, OSL_POLICY_WATCH (off, on),
OSL_AUDIT_FAILURE (reopen, exit), OSL_AUDIT_SEGMENT_MIB, OSL_AUDIT_PROBE_SECONDS,
OSL_POOL_SIZE, OSL_POOL_RESERVE_PERCENT, OSL_SUBJECT_SESSIONS, OSL_CATALOG_ENGINES,
OSL_CATALOG_TIMEOUT_MS, OSL_WORKERS.

A database, issuer or store that is away at the start is waited for: /ready says what is missing, and requests are refused.
Exit status: 0 stopped in order, 1 an error that nothing handled, or a machine that lacks something for now, 2 settings that
can never work, 7 the audit log failed for good, 130 stopped at once.

Example:
  $ osl serve --manifest manifest.yaml --policy policy.yaml --data-dir .osl`;

export function addServe(program: Command): void {
  const command = program
    .command('serve')
    .description('serve a manifest and its policy over REST and the Postgres wire')
    .addOption(manifestOption())
    .addOption(policyOption());
  addListenOptions(command)
    .addOption(workersOption())
    .addOption(consoleOption('off'))
    .option('--json', 'print where it listens as one JSON line')
    .addHelpText('after', HELP)
    .action(async (flags: RunFlags) => {
      const begun = import('osl-compiler').then(({ ready }) => ready()); // its grammar is compiled beside what follows
      begun.catch(() => undefined); // who needs it is told
      await (await import('../serve/run.js')).runServer(flags, null);
    });
}
