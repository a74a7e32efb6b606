import type { Command } from 'commander';
import { isThisMachine, type Settings } from '../src/service/settings.js';
import { type CallerFlags, callerToken } from './caller.js';
import { EXIT, Failure } from './exit.js';
import { addCallerOptions, dataDirOption, environmentOption, policyOption, settingsOf } from './flags.js';
import { runningServer, urlHost } from './server-file.js';

export interface OperatorFlags extends CallerFlags {
  readonly admin?: string;
  readonly dataDir?: string;
}

export const OPERATOR_HELP = `
Asks the admin listener, which OSL_ADMIN_PORT opens, and takes an admin role: docs/operations.md.`;

export function addOperatorOptions(command: Command): Command {
  return addCallerOptions(command)
    .addOption(environmentOption('OSL_ADMIN_URL'))
    .addOption(dataDirOption())
    .addOption(policyOption());
}

/** Address of the admin listener, and a token source: tokens are short-lived. @throws Failure */
export function operator(flags: OperatorFlags): { readonly url: string; token(): Promise<string> } {
  const settings = settingsOf(flags);
  const policy = flags.policy === undefined ? {} : { policy: settings.policyFile };
  return {
    url: adminUrl(flags.admin, settings),
    token: async () => {
      const caller = await callerToken({ ...flags, ...policy }, settings, 'admin');
      return caller.kind === 'given' ? caller.token : caller.issued.token;
    },
  };
}

function adminUrl(given: string | undefined, settings: Settings): string {
  if (given !== undefined) return given.replace(/\/+$/, '');
  const record = runningServer(settings.dataDir);
  if (record === null)
    throw new Failure(
      EXIT.unreachable,
      `error: no server runs in ${settings.dataDir}: name --data-dir, or --admin with the URL of its admin listener`,
    );
  const { adminHost = '127.0.0.1', adminPort } = record;
  if (adminPort === undefined || adminPort === null)
    throw new Failure(
      EXIT.unreachable,
      'error: the server has no admin listener: start it with OSL_ADMIN_PORT, such as 8643',
    );
  const address = adminHost === '0.0.0.0' ? '127.0.0.1' : adminHost === '::' ? '::1' : adminHost;
  return `${isThisMachine(adminHost) ? 'http' : 'https'}://${urlHost(address)}:${adminPort}`;
}
