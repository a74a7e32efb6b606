import { spawn } from 'node:child_process';
import type { Command } from 'commander';
import { messageOf } from '../../src/base/thrown.js';
import { serverUrl } from '../client.js';
import { failure, usage } from '../exit.js';
import { dataDirOption, serverOption, settingsOf } from '../flags.js';
import type { LoginOffer } from '../login/provider.js';
import { note, print } from '../output.js';

interface LoginFlags {
  readonly server?: string;
  readonly dataDir?: string;
  readonly device?: true;
  readonly open: boolean;
  readonly issuer?: string;
  readonly clientId?: string;
}

const HELP = `
Opens your browser at the provider that the server names. What it gives is kept in a file that only you can read
($XDG_CONFIG_HOME/osl/logins), renewed, and exchanged for tokens of 300 s by osl query, psql, proxy, mcp and the others,
which then need no --token and no --subject.

Examples:
  $ osl login --server https://osl.example
  $ osl login --server https://osl.example --device    # no browser here: confirm a code on another screen
  $ osl query --server https://osl.example "select name from osl.entities.package limit 5"`;

export function addLogin(program: Command): void {
  program
    .command('login')
    .addOption(serverOption())
    .option('--device', 'confirm a code on another screen, instead of a browser here')
    .option('--no-open', 'print the address, and open no browser')
    .option('--issuer <url>', 'with another provider than the server names')
    .option('--client-id <id>', 'as which client of it')
    .addOption(dataDirOption())
    .addHelpText('after', HELP)
    .action(runLogin);
}

async function runLogin(flags: LoginFlags): Promise<void> {
  const server = serverUrl(flags.server, settingsOf(flags));
  const [provider, { writeLogin }] = await Promise.all([
    import('../login/provider.js'),
    import('../login/store.js'),
  ]);
  if ((flags.issuer === undefined) !== (flags.clientId === undefined))
    throw usage('--issuer and --client-id go together');
  const offer: LoginOffer =
    flags.issuer === undefined || flags.clientId === undefined
      ? await provider.offerOf(server)
      : { issuer: flags.issuer, clientId: flags.clientId, scopes: ['openid', 'offline_access'] };
  const show = (url: string, code: string | null): void => {
    print(code === null ? `Log in at ${url}` : `Log in at ${url} and confirm the code ${code}`);
    if (flags.open && flags.device !== true) openBrowser(url);
  };
  const tokens = await (flags.device === true ? provider.byDevice : provider.byBrowser)(offer, show).catch(
    (error: unknown) => {
      throw failure(`${offer.issuer} has not let you in: ${messageOf(error)}`);
    },
  );
  writeLogin({ server, ...offer, ...tokens });
  const who = await provider.loginToken(server, false);
  print(`logged in at ${server} as ${who?.subject ?? 'nobody'}`);
  if (tokens.refreshToken === null)
    note('the provider gave no refresh token: the login ends with its ID token');
}

/** Opens `url` in the browser. Errors are ignored, because the address is also printed. */
function openBrowser(url: string): void {
  const [command, args] =
    process.platform === 'darwin'
      ? ['open', [url]]
      : process.platform === 'win32'
        ? ['rundll32', ['url.dll,FileProtocolHandler', url]]
        : ['xdg-open', [url]];
  spawn(command, args, { stdio: 'ignore', detached: true })
    .once('error', () => undefined)
    .unref();
}

interface LogoutFlags {
  readonly server?: string;
  readonly dataDir?: string;
}

const LOGOUT_HELP = `
Examples:
  $ osl logout --server https://osl.example`;

export function addLogout(program: Command): void {
  program
    .command('logout')
    .addOption(serverOption())
    .addOption(dataDirOption())
    .addHelpText('after', LOGOUT_HELP)
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
