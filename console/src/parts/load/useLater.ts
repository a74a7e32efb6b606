import { useEffect, useState } from 'react';

/** `value` as it was so many milliseconds ago, once it rests: for what is typed. */
export function useLater<T>(value: T, ms = 250): T {
  const [later, setLater] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setLater(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return later;
}
