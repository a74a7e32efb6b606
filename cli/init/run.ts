import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { EXIT, Failure, usage } from '../exit.js';
import { counted } from '../output.js';
import { runningServer } from '../server-file.js';
import { connectTo, readerToMake } from './connect.js';
import { type Design, designModel } from './design.js';
import type { InitFlags } from './flags.js';
import { dataDirOf, make } from './make.js';
import { assumedPrompt, type Prompt, terminalPrompt } from './prompt.js';
import { type Outcome, report, reportJson } from './report.js';

export async function runInit(folder: string, flags: InitFlags): Promise<void> {
  const prompt = promptOf(flags);
  try {
    const outcome = await init(resolve(process.cwd(), folder), flags, prompt);
    if (flags.json) reportJson(outcome);
    else report(outcome);
  } finally {
    prompt.close();
  }
}

function promptOf(flags: InitFlags): Prompt {
  if (flags.yes) return assumedPrompt();
  if (process.stdin.isTTY) return terminalPrompt();
  throw usage('standard input is no terminal: --yes takes the default of every question');
}

async function init(dir: string, flags: InitFlags, prompt: Prompt): Promise<Outcome> {
  await mayWrite(dir, flags, prompt);
  const connected = await connectTo(flags, prompt);
  const { survey } = connected;
  try {
    const started = performance.now();
    const reader = await readerToMake(connected, flags, prompt);
    if (flags.rowSecurity && reader === null)
      throw usage('--row-security: its policies hold for a role that owns nothing: --create-role makes one');
    const design = await designModel(connected, reader, flags, prompt);
    if (!(await prompt.confirm(`\nWrite ${summary(design)} to ${dir}?`, true))) {
      throw new Failure(EXIT.failed, 'stopped: nothing was written');
    }
    const outcome = await make(dir, connected, reader, design);
    return { ...outcome, seconds: (performance.now() - started) / 1000 };
  } finally {
    survey.close();
  }
}

/** @throws Failure if a server runs on the folder, or its files must not be overwritten */
async function mayWrite(dir: string, flags: InitFlags, prompt: Prompt): Promise<void> {
  const server = runningServer(dataDirOf(dir));
  if (server !== null)
    throw usage(`a server runs in ${dataDirOf(dir)} (process ${server.pid}): stop it first`);
  const there = ['manifest.yaml', 'policy.yaml'].filter((name) => existsSync(join(dir, name)));
  if (there.length === 0 || flags.force) return;
  const what = `${there.join(' and ')} in ${dir}`;
  if (prompt.assumes) throw usage(`${what} would be overwritten: --force does that`);
  if (await prompt.confirm(`Overwrite ${what}?`, false)) return;
  throw new Failure(EXIT.failed, 'stopped: nothing was written');
}

function summary({ drafted, role, subject }: Design): string {
  const { entities, bridges } = drafted.manifest;
  const what = `${counted(entities.size, 'entity', 'entities')} and ${counted(bridges.size, 'bridge', 'bridges')}`;
  return `${what}, readable by role ${role} of ${subject},`;
}
