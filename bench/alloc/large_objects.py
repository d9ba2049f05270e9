# Objects too large to be neighbours in a kilobyte: holds some, and replaces each a few times. large_objects.py [OBJECTS [BYTES [ROUNDS]]]
import random, sys
count, size, rounds = [int(value) for value in sys.argv[1:]] + [300_000, 1040, 10][len(sys.argv) - 1:]
rnd = random.Random(20170321)
order = list(range(count))
payload = size - sys.getsizeof(b"")
held = [bytes(payload) for _ in order]
for _ in range(rounds):
    rnd.shuffle(order)
    for index in order:
        held[index] = None
        held[index] = bytes(payload)
print(sum(map(len, held)))
