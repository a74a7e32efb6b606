import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { compile, emit, ready } from 'osl-compiler';
import {
  compileSnapshot,
  type EffectiveAccess,
  effectiveAccess,
  type IdentityClaims,
  type PolicySnapshot,
} from '../../policy/index.js';
import { loadManifest, loadPolicyDocument, type Manifest } from '../../src/model/manifest/index.js';
import { questionOf } from '../compile/question.js';
import { type Findings, type Measure, measure, median } from '../report.js';
import { auditBytes } from './audit-bytes.js';
import { distributedBench } from './distributed.js';
import { manifestYaml, policyYaml, roleNames, type Size } from './generate.js';

const LARGE: Size = { entities: 10_000, grants: 100_000 };
/** Same number of grants per entity, so that both compile the same query to the same SQL. */
const SMALL: Size = { entities: 10, grants: 100 };

/** Time to load a large manifest and policy, to compile against them, and to query tables over several servers. */
export async function scaleBench(quick: boolean): Promise<Findings> {
  await ready();
  const dir = mkdtempSync(join(tmpdir(), 'osl-scale-'));
  try {
    const files = { small: write(dir, 'small', SMALL), large: write(dir, 'large', LARGE) };
    const loads: Loaded[] = [];
    for (let round = 0; round < (quick ? 1 : 7); round++) loads.push(await load(files.large));
    const [large] = loads;
    if (large === undefined) throw new Error('nothing was loaded');
    const small = await load(files.small);
    const measures = [...loadMeasures(files.large, loads), ...compileMeasures(small, large, quick)];
    const distributed = await distributedBench(quick);
    return {
      measures: [...measures, await auditBytes(), ...distributed.measures],
      tables: distributed.tables,
    };
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

interface Files {
  readonly manifest: string;
  readonly policy: string;
}

function write(dir: string, name: string, size: Size): Files {
  const files = { manifest: join(dir, `${name}-manifest.yaml`), policy: join(dir, `${name}-policy.yaml`) };
  writeFileSync(files.manifest, manifestYaml(size));
  writeFileSync(files.policy, policyYaml(size));
  return files;
}

interface Loaded {
  readonly manifest: Manifest;
  readonly snapshot: PolicySnapshot;
  readonly manifestMs: number;
  readonly policyMs: number;
  readonly snapshotMs: number;
}

/** The three steps of a start or reload, in sequence. */
async function load(files: Files): Promise<Loaded> {
  const start = performance.now();
  const manifest = await loadManifest(files.manifest);
  const read = performance.now();
  const policy = await loadPolicyDocument(files.policy);
  const checked = performance.now();
  const snapshot = compileSnapshot(policy.document, manifest.catalog);
  const done = performance.now();
  return {
    manifest,
    snapshot,
    manifestMs: read - start,
    policyMs: checked - read,
    snapshotMs: done - checked,
  };
}

/** Design §12: 10,000 entities and 100,000 grants load within 2 s. */
const GOAL_MS = 2_000;

function loadMeasures(files: Files, loads: readonly Loaded[]): readonly Measure[] {
  const of = (id: string, ms: (l: Loaded) => number, against: string | null = null): Measure =>
    measure(id, 'ms', loads.map(ms), against);
  const mib = (file: string): string => `${(statSync(file).size / 2 ** 20).toFixed(1)} MiB of YAML`;
  const total = (l: Loaded): number => l.manifestMs + l.policyMs + l.snapshotMs;
  return [
    measure(
      'scale.load_ms',
      'ms',
      loads.map(total),
      `goal: ${GOAL_MS} ms`,
      GOAL_MS / median(loads.map(total)),
    ),
    of('scale.load.manifest_ms', (l) => l.manifestMs, mib(files.manifest)),
    of('scale.load.policy_ms', (l) => l.policyMs, mib(files.policy)),
    of('scale.load.snapshot_ms', (l) => l.snapshotMs),
    measure(
      'scale.rss_mib',
      'MiB',
      [process.memoryUsage.rss() / 2 ** 20],
      `${loads.length} models in memory`,
    ),
  ];
}

function compileMeasures(small: Loaded, large: Loaded, quick: boolean): readonly Measure[] {
  const access = { small: accessOf(small), large: accessOf(large) };
  const size = quick ? 300 : 1_000;
  const rounds = quick ? 5 : 9;
  const once = (loaded: Loaded, of: EffectiveAccess): number => timeCompile(loaded, of, size);
  once(small, access.small.access);
  once(large, access.large.access);
  const pairs = Array.from({ length: rounds }, () => ({
    small: once(small, access.small.access),
    large: once(large, access.large.access),
  }));
  const against = `${SMALL.entities} entities, ${SMALL.grants} grants`;
  const ratio = median(pairs.map((p) => p.small / p.large));
  return [
    measure(
      'scale.compile.p50_us',
      'µs',
      pairs.map((p) => p.large),
      against,
      ratio,
    ),
    measure('scale.first_access_us', 'µs', [access.large.us], against, access.small.us / access.large.us),
  ];
}

/** Access of the caller. The first request under a policy computes it; later ones use the cached result. */
function accessOf({ manifest, snapshot }: Loaded): { readonly access: EffectiveAccess; readonly us: number } {
  const now = Math.floor(Date.now() / 1_000);
  const identity: IdentityClaims = Object.freeze({
    tenant: 'bench',
    subject: 'user:bench',
    chain: ['user:bench'],
    roles: [],
    aclRoles: roleNames(),
    issuedAt: now,
    expiresAt: now + 300,
    tokenId: 'bench',
  });
  const start = performance.now();
  const access = effectiveAccess(identity, snapshot, manifest.catalog);
  return { access, us: 1_000 * (performance.now() - start) };
}

let variant = 0;

/** Median time in µs of `n` compilations of texts never seen before. */
function timeCompile({ manifest }: Loaded, access: EffectiveAccess, n: number): number {
  const times = Array.from({ length: n }, () => {
    const text = questionOf(++variant);
    const start = process.hrtime.bigint();
    emit(compile(text, manifest.catalog, access));
    return Number(process.hrtime.bigint() - start) / 1_000;
  });
  return median(times);
}
