-- Removes the leases ARGV[2...] for good.
for i = 2, #ARGV do
  drop(ARGV[i], now)
  bury(ARGV[i])
end
trim()
return #ARGV
