import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** The proof, and the program that Coq extracts from it. Both are built in a temporary folder. */
const PROOF = fileURLToPath(new URL('../../../docs/formal/', import.meta.url));
const EXPLORER = fileURLToPath(new URL('../../../test/formal/explore.ml', import.meta.url));

/** Why a test without Coq does not run. */
export const NO_COQ = 'no Coq 8.16: install coqc, and ocamlopt for the comparison (Debian: coq)';

/** In the order in which they import each other. */
const FILES = ['Values', 'Plans', 'Planner', 'Guard', 'Examples', 'Extract'];

const runs = (command: string, args: readonly string[]): boolean => spawnSync(command, args).status === 0;
export const hasCoq = (): boolean => runs('coqc', ['--version']);
export const hasOcaml = (): boolean => runs('ocamlopt', ['-version']);

/** Output of coqc for each file. */
export interface CheckedProof {
  readonly folder: string;
  readonly printed: string;
}

/** Compiles the proof; throws what coqc says if it does not hold. The caller removes the folder. */
export function checkProof(): CheckedProof {
  const folder = mkdtempSync(join(tmpdir(), 'osl-formal-'));
  let printed = '';
  for (const name of FILES) {
    copyFileSync(join(PROOF, `${name}.v`), join(folder, `${name}.v`));
    const { status, stdout, stderr } = spawnSync('coqc', ['-Q', '.', '', `${name}.v`], {
      cwd: folder,
      encoding: 'utf8',
    });
    if (status !== 0) throw new Error(`${name}.v is not accepted: ${stderr}`);
    printed += stdout;
  }
  return { folder, printed };
}

/** Runs the model: outcomes of some of the plans that it allows for a query. */
export class Explorer {
  readonly #child: ChildProcess;
  readonly #folder: string;
  readonly #waiting = new Map<string, (outcomes: readonly string[]) => void>();
  #failed: string | null = null;
  #ids = 0;

  private constructor(child: ChildProcess, folder: string) {
    this.#child = child;
    this.#folder = folder;
    if (child.stdout === null) throw new Error('the model has no output');
    createInterface({ input: child.stdout }).on('line', (line) => {
      const [id = '', ...rest] = line.split(' ');
      this.#waiting.get(id)?.(rest.join(' ').split('|'));
      this.#waiting.delete(id);
    });
    child.once('exit', (code) => {
      this.#failed = `the model ended with ${code}`;
      for (const answer of this.#waiting.values()) answer([this.#failed]);
    });
  }

  static build(): Explorer {
    const { folder } = checkProof();
    copyFileSync(EXPLORER, join(folder, 'explore.ml'));
    const args = ['-w', '-a', 'model.mli', 'model.ml', 'explore.ml', '-o', 'explore'];
    const { status, stderr } = spawnSync('ocamlopt', args, { cwd: folder, encoding: 'utf8' });
    if (status !== 0) throw new Error(`explore.ml is not accepted: ${stderr}`);
    return new Explorer(spawn(join(folder, 'explore'), { stdio: ['pipe', 'pipe', 'inherit'] }), folder);
  }

  /** Sets the world of the following queries. */
  world(words: string): void {
    this.#write(`world ${words}`);
  }

  /**
   * @param budget number of plans to try
   * @returns outcomes, each as rows in order of their text, or `!` and an SQLSTATE
   */
  outcomes(words: string, seed: number, budget: number, fenced: boolean): Promise<readonly string[]> {
    const id = String(++this.#ids);
    return new Promise((done) => {
      if (this.#failed !== null) return done([this.#failed]);
      this.#waiting.set(id, done);
      this.#write(`query ${id} ${seed} ${budget} ${fenced ? 1 : 0} ${words}`);
    });
  }

  close(): void {
    this.#child.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #write(line: string): void {
    this.#child.stdin?.write(`${line}\n`);
  }
}

/** Texts of the proof's files. */
export const proofTexts = (): ReadonlyMap<string, string> =>
  new Map(
    readdirSync(PROOF)
      .filter((f) => f.endsWith('.v'))
      .map((f) => [f, readFileSync(join(PROOF, f), 'utf8')]),
  );
