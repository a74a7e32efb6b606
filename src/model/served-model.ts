import type { PolicySnapshot } from '../../policy/index.js';
import type { Manifest, ManifestDocument, Overlay } from './manifest/index.js';

/** Manifest and policy that serve together. A reload replaces both or neither. */
export interface Model {
  readonly manifest: Manifest;
  /** Null while no policy is loaded: then everything is refused. */
  readonly snapshot: PolicySnapshot | null;
}

/** State in which the newest policy is missing or invalid and the last valid one serves. Times are ms since 1970. */
export interface FallbackPolicy {
  readonly since: number;
  /** Nothing serves from then on. */
  readonly until: number;
}

/** External services of this process: true once one has answered since the start, or if there is none. */
export interface ServicesReached {
  readonly control: boolean;
  /** Store in which gateways count limits together. */
  readonly limits: boolean;
  /** Issuers with keys; `none`: no key at all is loaded, so no token can be valid. */
  readonly issuers: 'all' | 'some' | 'none';
}

/** Manifest file as last loaded, and the version that it would have alone. */
export interface FileLayer {
  readonly document: ManifestDocument;
  readonly version: string;
}

/** Published version, a layer over the manifest file. */
export type PublishedLayer = Overlay & { readonly id: string };

interface ServedParts extends Model {
  readonly tenant: string;
  readonly file: FileLayer;
  readonly published: PublishedLayer | null;
}

/**
 * Everything that is served together, frozen. Reading it once gives a consistent whole: the private field prevents
 * combining parts of two. It is replaced only by `Serving` of `src/service/serving.ts`.
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

  /** The same under another policy, or under none. */
  underPolicy(snapshot: PolicySnapshot | null): ServedModel {
    return new ServedModel({ ...this.#parts, snapshot });
  }

  /** The same manifest file, with another manifest, policy and publication. */
  over(next: Model, published: PublishedLayer | null): ServedModel {
    const { manifest, snapshot } = next;
    return new ServedModel({ ...this.#parts, manifest, snapshot, published });
  }
}
