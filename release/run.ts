import { spawn } from 'node:child_process';

/** Runs a command and returns its standard output. @throws Error with its standard error if it fails */
export function run(cwd: string, command: string, ...args: readonly string[]): Promise<string> {
  const child = spawn(command, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'] });
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => out.push(chunk));
  child.stderr.on('data', (chunk: Buffer) => err.push(chunk));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => {
      const said = Buffer.concat(out).toString();
      if (code === 0) return resolve(said);
      const tail = `${said}${Buffer.concat(err).toString()}`.trim().split('\n').slice(-40).join('\n');
      reject(new Error(`${[command, ...args].join(' ')} ended with ${code}:\n${tail}`));
    });
  });
}
