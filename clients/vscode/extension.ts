import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { window, workspace } from 'vscode';
import { LanguageClient } from 'vscode-languageclient/node';

let client: LanguageClient | null = null;

/** Starts the workspace's `osl lsp`; if that fails, reports the error and provides only syntax highlighting. */
export async function activate(): Promise<void> {
  const folder = workspace.workspaceFolders?.[0]?.uri.fsPath;
  const settings = workspace.getConfiguration('osl');
  const [command = 'osl', ...args] = commandIn(folder, settings.get<string[]>('command', []));
  const subject = settings.get('subject', '');
  const options = { ...(folder !== undefined && { cwd: folder }), shell: process.platform === 'win32' };
  const server = {
    command,
    args: [...args, 'lsp', '--stdio', ...(subject === '' ? [] : ['--subject', subject])],
    options,
  };
  client = new LanguageClient('osl', 'OSL Gateway', server, {
    documentSelector: [
      { scheme: 'file', language: 'yaml' },
      { scheme: 'file', language: 'osql' },
    ],
  });
  try {
    await client.start();
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    void window.showWarningMessage(`osl lsp did not start (${why}): install osl-gateway, or set osl.command`);
  }
}

export async function deactivate(): Promise<void> {
  await client?.stop();
}

/** Command line of the server: from the setting, else from the workspace's own packages, else from the PATH. */
function commandIn(folder: string | undefined, set: readonly string[]): readonly string[] {
  if (set.length > 0) return set;
  const name = process.platform === 'win32' ? 'osl.cmd' : 'osl';
  const own = folder === undefined ? '' : join(folder, 'node_modules', '.bin', name);
  return [own !== '' && existsSync(own) ? own : name];
}
