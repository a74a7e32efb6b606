import type { PolicySnapshot } from '../../policy/index.js';
import type { Manifest, ManifestDocument, Overlay } from './manifest/index.js';

/** The versions that serve together. A reload replaces the pair whole or not at all. */
export interface Model {
  readonly manifest: Manifest;
  /** Null while no policy is loaded: then everything is refused. */
  readonly snapshot: PolicySnapshot | null;
}

/** The newest policy is missing or invalid, and the last valid one serves meanwhile. Times are ms since 1970. */
export interface KeptPolicy {
  readonly since: number;
  /** From then on nothing serves. */
  readonly until: number;
}

/** External services of this process: true once it has answered since the start, or if there is none. */
export interface PartsReached {
  /** The control database. */
  readonly control: boolean;
  /** The store in which gateways count limits together. */
  readonly limits: boolean;
  /** Issuers with keys; `none`: no key at all is loaded, not even one of our own, so that no token can be valid. */
  readonly issuers: 'all' | 'some' | 'none';
}

/** Manifest file as it was last loaded, and the version that it would have alone. */
export interface FileLayer {
  readonly document: ManifestDocument;
  readonly version: string;
}

/** Published version, a layer over the manifest file. */
export type PublishedLayer = Overlay & { readonly id: string };

interface ServedParts extends Model {
  readonly tenant: string;
  /** The layer below the published objects. */
  readonly file: FileLayer;
  /** Null while nothing is published. */
  readonly published: PublishedLayer | null;
}

/**
 * Everything that is served together, frozen. Reading it once gives a consistent whole: the private field prevents
 * combining parts of two. The served model is replaced in one place, `Serving` of `src/service/serving.ts`.
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

  /** Null while no policy is loaded: then everything is refused. */
  get snapshot(): PolicySnapshot | null {
    return this.#parts.snapshot;
  }

  get file(): FileLayer {
    return this.#parts.file;
  }

  get published(): PublishedLayer | null {
    return this.#parts.published;
  }

  /** The same under another policy; null: under none. */
  underPolicy(snapshot: PolicySnapshot | null): ServedModel {
    return new ServedModel({ ...this.#parts, snapshot });
  }

  /** This manifest file with another manifest and policy, and with what is published now. */
  over(next: Model, published: PublishedLayer | null): ServedModel {
    const { manifest, snapshot } = next;
    return new ServedModel({ ...this.#parts, manifest, snapshot, published });
  }
}
