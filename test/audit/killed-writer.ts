import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** Milliseconds until the kill: from the start of the writer, or from its first acknowledgement. */
export interface KillTime {
  readonly from: 'start' | 'acknowledgement';
  readonly ms: number;
}

/**
 * Runs a writer and kills it. Returns the request id of each record that it acknowledged, by sequence number.
 *
 * @param args of Node: the writer's script, the directory of its log, the round, and what else it takes
 * @throws if the writer ends by itself
 */
export async function killedWriter(
  args: readonly string[],
  { from, ms }: KillTime,
): Promise<Map<number, string>> {
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const exited = once(child, 'close');
  const killLater = (): unknown => setTimeout(() => child.kill('SIGKILL'), ms);
  if (from === 'start') killLater();
  else child.stdout.once('data', killLater);
  let [printed, complaint] = ['', ''];
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaint += text;
  });
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed += text;
  });
  const [code, signal] = await exited;
  if (signal !== 'SIGKILL')
    throw new Error(`the writer ended by itself (${code ?? signal}): ${args.join(' ')}: ${complaint}`);
  const lines = printed.split('\n').slice(0, -1);
  return new Map(lines.map((line) => [Number(line.split(' ')[0]), line.split(' ')[1] ?? '']));
}
