/** Faults of content, mapped to the error catalogue or printed by the caller. */
const CONTENT_ERRORS = [
  /** No store was ever begun for this facet version. */
  'storeMissing',
  /** The first build has not ended: nothing is served from it. */
  'storeBuilding',
  /** The store was made with another embedder, chunking or redaction than the manifest states. */
  'storeMismatch',
  /** Another `indexFacet` of the same facet version took over. */
  'overtaken',
  /** Document ids of the source are NULL or not unique. */
  'documentIds',
  /** The extension is missing or lies in another schema than `public`. */
  'vectorExtension',
  /** The vectors are wider than the approximate index that the facet asks for can hold. */
  'tooWide',
  'unknownModel',
  'unknownDetector',
  /** A detector is asked for a country that it knows nothing of. */
  'unknownCountry',
  'unknownVersion',
  /** The embedding or chat endpoint cannot be reached or refuses, after retries. */
  'endpoint',
  /** The endpoint answered something that is no answer. */
  'malformedAnswer',
  /** The subject's daily budget for models is used up, or cannot be counted. */
  'overBudget',
  /** An optional package that the configuration asks for is not installed. */
  'notInstalled',
] as const;

export type ContentErrorName = (typeof CONTENT_ERRORS)[number];

/** A coded failure of the content plane. `message` is one lower-case sentence and holds no row data. */
export class ContentError extends Error {
  override readonly name = 'ContentError';
  readonly code: ContentErrorName;
  readonly hint: string | null;
  /** Status of the endpoint's answer, if it answered. */
  readonly status: number | null;

  constructor(
    code: ContentErrorName,
    message: string,
    hint: string | null = null,
    status: number | null = null,
  ) {
    super(message);
    this.code = code;
    this.hint = hint;
    this.status = status;
  }
}
