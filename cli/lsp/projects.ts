import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Project } from './check.js';
import type { FileKind } from './schema-at.js';

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
    return null; // a URI of another machine
  }
}

const MANIFEST_KEY = /^(connectors|entities|relationships|bridges|facets|metrics|raw_sql):/m;
const POLICY_KEY = /^(subjects|roles|masks):/m;
const BEGINNING = 4_096;

/** Kind of a file, by name, the schema in its first lines, or its keys; null for files of others. */
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

/** The manifest and policy that a file belongs to; null without a manifest. */
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
