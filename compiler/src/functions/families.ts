/** Types of which one operator or function has an overload each, narrowest first. */

export const INTEGERS = ['int2', 'int4', 'int8'] as const;
export const FLOATS = ['float4', 'float8'] as const;
export const NUMBERS = [...INTEGERS, ...FLOATS, 'numeric'] as const;
export const MOMENTS = ['date', 'timestamp', 'timestamptz'] as const;
