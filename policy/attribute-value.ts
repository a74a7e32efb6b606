/** What a subject has of an attribute: values of which one must match, or `any`, which everything matches. */
export type AttributeValue = 'any' | readonly string[];
