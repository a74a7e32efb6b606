import {
  compileManifest,
  type Manifest,
  type ManifestDocument,
  manifestShape,
} from '../../../model/manifest/index.js';
import { members } from '../members.js';
import type { Part } from '../part.js';
import type { Place } from '../source.js';
import { jsonObject, VENDOR } from './expression.js';

/** The manifest, and perhaps a policy, that a file carries from an export of this gateway. */
export interface Carried {
  readonly manifest: Manifest;
  /** Not yet looked at; null where there is none. */
  readonly policy: unknown;
  readonly place: Place;
}

/** What the extension of a model holds; null where there is none, or none that loads, which is reported. */
export function carriedBy(model: Part): Carried | null {
  for (const part of model.parts('custom_extensions')) {
    if (part.text('vendor_name') !== VENDOR) continue;
    const data = jsonObject(part.text('data') ?? '');
    const document = data?.['format'] === 1 ? plain(data['manifest'], 0) : null;
    const compiled =
      manifestShape(document).length > 0 ? null : compileManifest(document as ManifestDocument); // checked
    if (compiled?.ok === true) {
      return {
        manifest: compiled.manifest,
        policy: plain(data?.['policy'] ?? null, 0),
        place: part.at('data'),
      };
    }
    part.note('data', 'lost', 'the extension holds no manifest that loads: only the core was read', 'high');
  }
  return null;
}

const DEEPEST = 32;

/** A value of JSON as manifests are: objects without a prototype. */
function plain(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null || depth > DEEPEST) return depth > DEEPEST ? null : value;
  if (Array.isArray(value)) return value.map((v) => plain(v, depth + 1));
  return members(Object.entries(value).map(([k, v]) => [k, plain(v, depth + 1)] as const));
}
