import { createHash, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, realpathSync } from 'node:fs';
import { type FileHandle, mkdir, open, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { type AuditVerdict, directorySource, verifyAuditLog } from '../../audit/index.js';
import { syncNames } from '../../src/base/files.js';
import { TarDamaged, type TarPart, tarParts } from '../../src/base/tar-stream.js';
import { type RestoredChain, writeOrigin, writeRestoreNote } from '../../src/service/directory-origin.js';
import { endedChains, endedName } from '../../src/service/process-files.js';
import { chainName } from '../audit/log.js';
import { EXIT, Failure, usage } from '../exit.js';
import { settingsOf } from '../flags.js';
import { counted, print, printJson } from '../output.js';
import { checkBackup, DATA, HEAD, SUMS, type WholeBackup } from './archive.js';

export interface RestoreFlags {
  readonly dataDir?: string;
  readonly json?: true;
}

/**
 * Creates a data directory from a backup, completely or not at all: all bytes are checked before the first is written,
 * and the audit chains are verified before the directory gets its final name.
 *
 * @throws Failure
 */
export async function runRestore(given: string, flags: RestoreFlags): Promise<void> {
  const { dataDir, keysDir } = settingsOf(flags);
  requireEmpty(dataDir);
  const file = await open(given, 'r');
  try {
    const backup = await checked(file, given);
    const making = `${dataDir}.restoring-${randomBytes(4).toString('hex')}`;
    mkdirSync(dirname(dataDir), { recursive: true });
    await mkdir(making, { mode: 0o700 });
    try {
      await unpack(file, making, backup);
      const chains = await verifiedChains(making);
      await describeForStart(making, dataDir, backup, chains);
      requireEmpty(dataDir);
      await rename(making, dataDir).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'EBUSY') throw error;
        throw usage(`${dataDir} is a mount point, which cannot be replaced: name a --data-dir within it`);
      });
      await syncNames(dirname(dataDir));
      report(given, dataDir, keysDir, backup, chains, flags);
    } catch (error) {
      await rm(making, { recursive: true, force: true });
      throw error;
    }
  } finally {
    await file.close();
  }
}

/** Refuses a directory with content, because existing files may be the only copy left. @throws Failure */
function requireEmpty(dataDir: string): void {
  if (existsSync(dataDir) && readdirSync(dataDir).length > 0)
    throw usage(`${dataDir} is not empty: name a --data-dir that is not there yet, or move this one away`);
}

async function checked(file: FileHandle, given: string): Promise<WholeBackup> {
  try {
    return await checkBackup(file, hashOf);
  } catch (error) {
    if (!(error instanceof TarDamaged) && !(error instanceof SyntaxError)) throw error;
    throw new Failure(
      EXIT.damaged,
      `error: ${given} cannot be restored: ${error.message}. Nothing was written`,
    );
  }
}

async function hashOf(part: TarPart): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of part.bytes()) hash.update(chunk);
  return hash.digest('hex');
}

async function unpack(file: FileHandle, root: string, { sums }: WholeBackup): Promise<void> {
  const names: string[] = [];
  for await (const { path } of tarParts(file)) names.push(path);
  const ended = endedName(names.map((path) => path.split('/')[2] ?? ''));
  for await (const part of tarParts(file)) {
    if (part.path === HEAD || part.path === SUMS) continue;
    const to = join(root, placeOf(part.path, ended));
    if (part.kind === 'directory') {
      await mkdir(to, { recursive: true, mode: 0o700 });
      continue;
    }
    await mkdir(dirname(to), { recursive: true, mode: 0o700 });
    if ((await write(part, to)) !== sums.get(part.path))
      throw new Failure(EXIT.damaged, `error: ${part.path} changed while it was read`);
  }
}

/**
 * Returns the path at which to restore an entry. Audit chains go to the subdirectory `ended`, because the next start
 * begins a new chain next to them. @throws Failure if the path could leave the data directory
 */
function placeOf(path: string, ended: string): string {
  const [data, ...words] = path.split('/');
  const sound = data === DATA && words.every((word) => word !== '' && word !== '.' && word !== '..');
  if (!sound) throw new Failure(EXIT.damaged, `error: ${path} is not a path of a data directory`);
  const [top, within] = words;
  if (top !== 'audit' || within === undefined || within === 'readings' || within.startsWith('before-'))
    return words.join('/');
  return ['audit', ended, ...words.slice(1)].join('/');
}

async function write(part: TarPart, to: string): Promise<string> {
  const hash = createHash('sha256');
  const file = await open(to, 'wx', 0o600);
  try {
    for await (const chunk of part.bytes()) {
      hash.update(chunk);
      await file.writeFile(chunk);
    }
    await file.sync();
  } finally {
    await file.close();
  }
  return hash.digest('hex');
}

interface VerifiedChain extends RestoredChain {
  readonly verdict: AuditVerdict;
}

/** Verifies the audit chains below `root`. @throws Failure if one of them does not verify */
async function verifiedChains(root: string): Promise<readonly VerifiedChain[]> {
  const audit = join(root, 'audit');
  const chains: VerifiedChain[] = [];
  for (const dir of endedChains(audit)) {
    const source = directorySource(dir);
    const name = await chainName(source);
    if (name === null || (await source.segments()).length === 0) continue;
    const verdict = await verifyAuditLog(source);
    const at = dir.slice(audit.length + 1);
    if (verdict.problem !== null)
      throw new Failure(
        EXIT.damaged,
        `error: the audit log in the backup does not hold (${at}, ${verdict.problem.segment}:${verdict.problem.offset}): ${verdict.problem.message}. Nothing was restored`,
      );
    chains.push({ dir: at, name, records: verdict.records, signed: verdict.anchor?.size ?? null, verdict });
  }
  return chains;
}

async function describeForStart(
  making: string,
  dataDir: string,
  { head }: WholeBackup,
  chains: readonly VerifiedChain[],
): Promise<void> {
  const path = join(realpathSync(dirname(dataDir)), basename(dataDir));
  await writeOrigin(making, path, head.tenant);
  await writeRestoreNote(making, {
    made: head.made,
    at: new Date().toISOString(),
    keys: head.keys,
    chains: chains.map(({ verdict: _verdict, ...chain }) => chain),
  });
}

function report(
  given: string,
  dataDir: string,
  keysDir: string | null,
  { head, sums }: WholeBackup,
  chains: readonly VerifiedChain[],
  { json }: RestoreFlags,
): void {
  const keys = head.keys ? 'restored' : 'missing';
  if (json) {
    printJson({
      data_dir: dataDir,
      ...head,
      files: sums.size,
      chains: chains.map(({ verdict: _, ...chain }) => chain),
    });
    return;
  }
  print(
    `${dataDir}: restored from ${given}, made ${head.made} by ${head.version}, ${counted(sums.size, 'file', 'files')}`,
  );
  for (const { dir, records, signed, verdict } of chains) {
    print(`  audit/${dir}  the chain holds: ${records} records, ${signed ?? 0} of them signed`);
    if (verdict.openDecisions > 0)
      print(`    ${verdict.openDecisions} allowed requests have no outcome in it`);
  }
  print('  audit log     the first start begins a new chain, with a key of its own, and says so in it');
  if (keys === 'restored')
    print('  keys          those of the backup: tokens and masked hashes are as they were');
  else if (keysDir !== null) print(`  keys          those of ${keysDir} (OSL_KEYS_DIR)`);
  else
    print(
      '  keys          none: the first start makes new ones, so tokens of before are refused and masked hashes are others',
    );
}
