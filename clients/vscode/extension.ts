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
    const reason = error instanceof Error ? error.message : String(error);
    void window.showWarningMessage(
      `osl lsp did not start (${reason}): install osl-gateway, or set osl.command`,
    );
  }
}

export async function deactivate(): Promise<void> {
  await client?.stop();
}

/** Command line of the server: from the setting, else from the workspace's own packages, else from the PATH. */
function commandIn(folder: string | undefined, configured: readonly string[]): readonly string[] {
  if (configured.length > 0) return configured;
  const name = process.platform === 'win32' ? 'osl.cmd' : 'osl';
  const local = folder === undefined ? '' : join(folder, 'node_modules', '.bin', name);
  return [local !== '' && existsSync(local) ? local : name];
}
