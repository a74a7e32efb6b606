import type { Command } from 'commander';
import { messageOf } from '../../../base/thrown.js';
import { serverUrl } from '../client.js';
import { dataDirOption, serverOption, settingsOf } from '../flags.js';
import { note, print } from '../output.js';

interface LogoutFlags {
  readonly server?: string;
  readonly dataDir?: string;
}

const HELP = `
Examples:
  $ osl logout --server https://osl.example`;

export function addLogout(program: Command): void {
  program
    .command('logout')
    .addOption(serverOption())
    .addOption(dataDirOption())
    .addHelpText('after', HELP)
    .action(runLogout);
}

async function runLogout(flags: LogoutFlags): Promise<void> {
  const server = serverUrl(flags.server, settingsOf(flags));
  const { readLogin, removeLogin } = await import('../login/store.js');
  const login = readLogin(server);
  if (login === null) {
    print(`nobody is logged in at ${server}`);
    return;
  }
  removeLogin(server);
  if (login.refreshToken !== null) {
    const { revoked } = await import('../login/provider.js');
    await revoked(login, login.refreshToken).catch((error: unknown) =>
      note(`warning: ${login.issuer} could not be told (${messageOf(error)})`),
    );
  }
  print(`logged out of ${server}`);
}
