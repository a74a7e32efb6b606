import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { stackOf } from '../../src/base/thrown.js';
import type { FunctionEntry } from '../../src/model/graph/language.js';
import type { Diagnostic } from '../../src/model/manifest/index.js';
import type { CheckReply, CheckRequest, CheckResults, CheckTask, Project } from './check.js';
import type { FileKind } from './meaning.js';
import { type ManifestNames, NO_NAMES } from './names.js';

export interface ProjectFiles {
  readonly manifestFile: string | null;
  readonly policyFile: string | null;
}

export interface LspOptions extends ProjectFiles {
  readonly subject: string | null;
}

export type DocumentKind = FileKind | 'questions';

export function fileOf(uri: string): string | null {
  try {
    return uri.startsWith('file:') ? resolve(fileURLToPath(uri)) : null;
  } catch {
    return null; // the URI refers to another machine
  }
}

const MANIFEST_KEY = /^(connectors|entities|relationships|bridges|facets|metrics|raw_sql):/m;
const POLICY_KEY = /^(subjects|roles|masks):/m;
const BEGINNING = 4_096;

/** Kind of a file, determined from its name, the schema in its first lines, or its keys; null for unrelated files. */
export function kindOf(
  file: string,
  text: string,
  { manifestFile, policyFile }: ProjectFiles,
): DocumentKind | null {
  if (/\.osql$/i.test(file)) return 'questions';
  if (!/\.ya?ml$/i.test(file)) return null;
  if (file === manifestFile) return 'manifest';
  if (file === policyFile) return 'policy';
  const [, schema] = /\$schema=\S*?(manifest|policy)\.schema\.json/.exec(text.slice(0, BEGINNING)) ?? [];
  if (schema === 'manifest' || schema === 'policy') return schema;
  if (/(^|[/\\])manifest\.ya?ml$/.test(file)) return 'manifest';
  if (/(^|[/\\])policy\.ya?ml$/.test(file)) return 'policy';
  if (!/^version:/m.test(text.slice(0, BEGINNING))) return null;
  if (POLICY_KEY.test(text) && !MANIFEST_KEY.test(text)) return 'policy';
  return MANIFEST_KEY.test(text) && !POLICY_KEY.test(text) ? 'manifest' : null;
}

/** The manifest and policy of the project that a file belongs to; null without a manifest. */
export function projectOf(file: string, kind: DocumentKind, given: ProjectFiles): Project | null {
  const dir = dirname(file);
  switch (kind) {
    case 'manifest':
      return { manifestFile: file, policyFile: given.policyFile ?? existing(join(dir, 'policy.yaml')) };
    case 'policy': {
      const manifestFile = given.manifestFile ?? existing(join(dir, 'manifest.yaml'));
      return manifestFile === null ? null : { manifestFile, policyFile: file };
    }
    case 'questions': {
      const manifestFile = given.manifestFile ?? above(dir);
      if (manifestFile === null) return null;
      return projectOf(manifestFile, 'manifest', given);
    }
  }
}

function above(dir: string): string | null {
  const found = existing(join(dir, 'manifest.yaml'));
  if (found !== null || dirname(dir) === dir) return found;
  return above(dirname(dir));
}

function existing(file: string): string | null {
  return existsSync(file) ? file : null;
}

/** Memory limit of the thread in MiB. A manifest with 10,000 entities takes a few hundred. */
const MEMORY_MB = 2_048;

type Settle = (answer: CheckReply | null) => void;

/** Client of the checking thread. If the thread ends, the next task restarts it. */
export class CheckingThread {
  readonly #waiting = new Map<number, Settle>();
  #worker: Worker | null = null;
  #next = 0;

  /** Returns the result of `task`; null if the thread ended first. @throws Error with the stack from the thread */
  ask<K extends CheckTask['kind']>(
    task: Extract<CheckTask, { readonly kind: K }>,
  ): Promise<CheckResults[K] | null> {
    const worker = this.#worker ?? this.#start();
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, (answer) => {
        if (answer === null) resolve(null);
        else if ('failed' in answer) reject(new Error(answer.failed));
        else resolve(answer.result as CheckResults[K]); // the thread returns the result type of the task
      });
      worker.postMessage({ id, task } satisfies CheckRequest);
    });
  }

  async close(): Promise<void> {
    await this.#worker?.terminate();
  }

  #start(): Worker {
    const worker = new Worker(new URL('./checking-worker.js', import.meta.url), {
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB },
      // Standard output carries the protocol, so the thread must not write to it.
      stdout: true,
    });
    worker.stdout.pipe(process.stderr);
    worker.on('message', (answer: CheckReply) => {
      this.#waiting.get(answer.id)?.(answer);
      this.#waiting.delete(answer.id);
    });
    const ended = (): void => {
      if (this.#worker === worker) this.#worker = null;
      for (const settle of this.#waiting.values()) settle(null);
      this.#waiting.clear();
    };
    worker.once('error', ended).once('exit', ended);
    this.#worker = worker;
    return worker;
  }
}

export interface ProjectState {
  readonly project: Project;
  readonly names: ManifestNames;
  readonly functions: readonly FunctionEntry[];
}

interface ProjectEntry {
  state: ProjectState;
  timer: NodeJS.Timeout | null;
  running: Promise<void> | null;
  stale: boolean;
}

/** Reports an error on standard error, since standard output carries the protocol. */
export function reportError(error: unknown): void {
  process.stderr.write(`osl lsp: ${stackOf(error)}\n`);
}

export type DiagnosticsListener = (project: Project, diagnostics: readonly Diagnostic[]) => void;

/** Projects of the open files. Each is checked shortly after its last change, one check at a time. */
export class Projects {
  readonly #entries = new Map<string, ProjectEntry>();
  readonly #thread: CheckingThread;
  readonly #delayMs: number;
  readonly #open: () => readonly (readonly [file: string, text: string])[];
  readonly #found: DiagnosticsListener;

  constructor(
    thread: CheckingThread,
    delayMs: number,
    open: () => readonly (readonly [file: string, text: string])[],
    found: DiagnosticsListener,
  ) {
    this.#thread = thread;
    this.#delayMs = delayMs;
    this.#open = open;
    this.#found = found;
  }

  stateOf(project: Project): ProjectState {
    return this.#entry(project).state;
  }

  changed(project: Project): void {
    const entry = this.#entry(project);
    entry.stale = true;
    if (entry.timer !== null) clearTimeout(entry.timer);
    entry.timer = setTimeout(() => {
      entry.timer = null;
      if (entry.running === null) void this.#check(entry);
    }, this.#delayMs);
  }

  /** Resolves when the latest state has been checked, or immediately if no check is needed. */
  async settled(project: Project): Promise<void> {
    const entry = this.#entry(project);
    if (entry.timer !== null) {
      clearTimeout(entry.timer);
      entry.timer = null;
    }
    if (entry.running === null && entry.stale) void this.#check(entry);
    while (entry.running !== null) await entry.running;
  }

  #entry(project: Project): ProjectEntry {
    const key = `${project.manifestFile}\n${project.policyFile ?? ''}`;
    let entry = this.#entries.get(key);
    if (entry === undefined) {
      entry = {
        state: { project, names: NO_NAMES, functions: [] },
        timer: null,
        running: null,
        stale: true,
      };
      this.#entries.set(key, entry);
    }
    return entry;
  }

  #check(entry: ProjectEntry): Promise<void> {
    entry.running = this.#checked(entry)
      .catch(reportError)
      .finally(() => {
        entry.running = null;
        // Check again if something changed meanwhile; its timer fired during this check.
        if (entry.stale && entry.timer === null) void this.#check(entry);
      });
    return entry.running;
  }

  async #checked(entry: ProjectEntry): Promise<void> {
    entry.stale = false;
    const { project } = entry.state;
    const files = [project.manifestFile, project.policyFile];
    const open = this.#open().filter(([file]) => files.includes(file));
    const checked = await this.#thread.ask<'check'>({ kind: 'check', project, open });
    if (checked === null) return;
    const { names, functions, diagnostics } = checked;
    entry.state = { project, functions, names: names ?? entry.state.names };
    // If a newer check is pending, the positions of these diagnostics may be outdated.
    if (!entry.stale) this.#found(project, diagnostics);
  }
}
