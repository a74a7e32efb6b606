import type { PolicySnapshot } from '../../policy/index.js';
import type { Manifest, ManifestDocument, Overlay } from './manifest/index.js';

/** Manifest and policy that are served together. A reload replaces both or neither. */
export interface Model {
  readonly manifest: Manifest;
  /** The policy; null while none is loaded, in which case everything is refused. */
  readonly snapshot: PolicySnapshot | null;
}

/** Period, in ms since 1970, in which the last valid policy is served because the newest is missing or invalid. */
export interface FallbackPolicy {
  readonly since: number;
  /** End of the fallback, after which every request is refused. */
  readonly until: number;
}

/** Reachability of external services: true if the service has answered since the start, or is not configured. */
export interface ServicesReached {
  readonly control: boolean;
  /** False if this machine's clock disagrees with that of the control database, and another gateway's agrees. */
  readonly clock: boolean;
  /** Shared store of rate-limit counts. */
  readonly limits: boolean;
  /** Issuers whose keys are loaded. `none`: no token can be valid. */
  readonly issuers: 'all' | 'some' | 'none';
}

/** The manifest file as last loaded, and the version that the manifest has if no objects are published. */
export interface FileLayer {
  readonly document: ManifestDocument;
  readonly version: string;
}

/** The published version, which is layered over the manifest file. */
export type PublishedLayer = Overlay & { readonly id: string };

interface ServedParts extends Model {
  readonly tenant: string;
  readonly file: FileLayer;
  readonly published: PublishedLayer | null;
}

/**
 * Everything that is served together, frozen. Read it once to get a consistent state: the private field prevents mixing
 * parts of two states. It is replaced only by `CurrentModel` in `src/service/serving.ts`.
 */
export class ServedModel implements ServedParts {
  readonly #parts: ServedParts;

  constructor(parts: ServedParts) {
    this.#parts = Object.freeze({ ...parts });
    Object.freeze(this);
  }

  get tenant(): string {
    return this.#parts.tenant;
  }

  get manifest(): Manifest {
    return this.#parts.manifest;
  }

  get snapshot(): PolicySnapshot | null {
    return this.#parts.snapshot;
  }

  get file(): FileLayer {
    return this.#parts.file;
  }

  get published(): PublishedLayer | null {
    return this.#parts.published;
  }

  /** Returns the same model under a different policy; null means without a policy. */
  underPolicy(snapshot: PolicySnapshot | null): ServedModel {
    return new ServedModel({ ...this.#parts, snapshot });
  }

  /** Returns a model with the same manifest file, but a different manifest, policy and published version. */
  over(next: Model, published: PublishedLayer | null): ServedModel {
    const { manifest, snapshot } = next;
    return new ServedModel({ ...this.#parts, manifest, snapshot, published });
  }
}
